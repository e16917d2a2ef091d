"""What is said on [LD]'s three questions, beside what [LD] says.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fairwall.laws.local import LOCAL_LAWS
from sim.games.release.questions import FAIRNESS, UNIFORM, UTILITY, Answers, Effect, Effects, Standing
from sim.games.release.report.columns import MEASURES, change, signed
from sim.report.notation import plural

NEGLIGIBLE = 0.01
"""A change up to one point is negligible, as [LD] calls Adult's loss of utility, "only ~1%"."""

BEST = ("grr", "ss")
"""Whose trade-off [LD] finds best."""

RULES = (
    "How the paper's questions are answered",
    "A change is a mean over cells, positive where models got better; by a fairness metric they did where the cell's "
    "mean is closer to its perfect value. A change is clear where Student's 95% interval over seeds, paired by seed, "
    "excludes zero; elsewhere it has a question mark. Fairer, more useful: yes where at least one of the four metrics "
    "is clearly better and none clearly worse; no the other way round. Negligible: the interval of no utility reaches "
    "beyond a loss of one point; no: one lies beyond it. Alike: the same, for all metrics both ways. RQ3: each seed, "
    "split and epsilon ranks the protocols by each metric. GRR and SS are best where they have the two least mean "
    "ranks for the trade-off and another is clearly behind both; they are not where another is clearly ahead of each.",
)
"""A page's words on it."""

ASKED = {
    "RQ1": "does a release make models fairer, and what does it cost?",
    "RQ2": "which split of epsilon harms less?",
    "RQ3": "which protocol is best?",
}
"""The questions."""

_CLAIMS = {
    "RQ1": "fairer, at a negligible cost in utility",
    "RQ2": "k-based is fairer and more useful where domains are large",
    "RQ3": "GRR and SS have the best trade-off, BLH the worst utility: others' profiles are inconsistent",
    ("RQ1", "adult"): "fairer, at a cost of about 1% of utility",
    ("RQ1", "ACSCoverage"): "fairer but by OAD, at a minor cost in utility",
    ("RQ2", "adult"): "k-based is fairer and more useful",
    ("RQ2", "ACSCoverage"): "k-based is fairer; more useful by the summary, less by section 5.2",
    ("RQ2", "LSAC"): "both are alike",
}
"""What [LD] says, of a data set where it says something of its own."""

_ALIKE = "LSAC"


@dataclass(frozen=True)
class Verdict:
    """What is said on one question for one data set: by [LD], and here, with the numbers."""

    data: str
    question: str
    claim: str
    found: str


def verdicts(answered: Answers) -> tuple[Verdict, ...]:
    """Say what one data set's figures come to, question by question."""
    found = {"RQ1": _released(answered), "RQ2": _split(answered), "RQ3": _protocols(answered)}
    data = answered.data
    return tuple(
        Verdict(data, question, _CLAIMS.get((question, data), _CLAIMS[question]), text)
        for question, text in found.items()
    )


def protocol_title(protocol: str) -> str:
    """Name a protocol, or a control."""
    return LOCAL_LAWS[protocol].title if protocol in LOCAL_LAWS else protocol


_NO_SEED = "cannot say: in no seed are there"


def _released(answered: Answers) -> str:
    effects = answered.released
    if not effects:
        return f"{_NO_SEED} a clean trial"
    cost = _within([effects[key] for key in UTILITY], -NEGLIGIBLE)
    said = [
        f"fairer: {_better(effects, FAIRNESS)}; cost negligible: {cost}.",
        f"Change, + is better: {_listed(effects, FAIRNESS)}; {_listed(effects, (*UTILITY, 'auc'), worst=True)}.",
    ]
    if answered.dropped:
        said.append(f"Dropping the columns instead: {_listed(answered.dropped, ('sp', *UTILITY))}.")
    first = next(iter(effects.values()))
    return " ".join([*said, f"{plural(first.cells, 'cell')}, {plural(first.seeds, 'seed')}."])


def _split(answered: Answers) -> str:
    if not answered.split:
        return f"{_NO_SEED} k-based trials and others"
    said = []
    for other, effects in answered.split.items():
        first = next(iter(effects.values()))
        if answered.data == _ALIKE and other == UNIFORM:
            said.append(f"alike: {_within(effects.values(), -NEGLIGIBLE, NEGLIGIBLE)}.")
        else:
            against = "" if other == UNIFORM else f"Against {other}, "
            said.append(f"{against}fairer: {_better(effects, FAIRNESS)}; more useful: {_better(effects, UTILITY)}.")
        better = ", ".join(f"{_short(key)} {effects[key].better}" for key in (*FAIRNESS, *UTILITY) if key in effects)
        said.append(f"k-based is better in so many of {plural(first.cells, 'cell')}: {better}.")
    return " ".join([*said, f"{plural(first.seeds, 'seed')}."])


def _protocols(answered: Answers) -> str:
    standings = answered.standings
    if not standings:
        return f"{_NO_SEED} trials of several protocols"
    said = [f"GRR and SS best: {_best(standings)}."]
    order = ", ".join(_ranked(each, "trade-off") for each in standings)
    said.append(f"Mean rank of {len(standings)} by trade-off: {order}.")
    for kind in ("utility", "fairness"):
        first, *_, last = sorted(standings, key=lambda each: each.ranks[kind])
        said.append(f"By {kind}: from {_ranked(first, kind)} to {_ranked(last, kind)}.")
    if answered.inconsistency:
        words = ", ".join(f"{kind} {signed(found.mean, 2)}" for kind, found in answered.inconsistency.items())
        said.append(f"Correlation of inconsistent profiles with a worse rank: {words}.")
    return " ".join([*said, f"{plural(standings[0].seeds, 'seed')}."])


def _ranked(standing: Standing, kind: str) -> str:
    return f"{protocol_title(standing.protocol)} {standing.ranks[kind]:.1f}"


def _better(effects: Effects, metrics: Iterable[str]) -> str:
    """Say whether a change makes things better by these metrics."""
    signs = {effects[metric].sign for metric in metrics if metric in effects} - {0}
    return {frozenset(): "cannot say", frozenset({1}): "yes", frozenset({-1}): "no"}.get(frozenset(signs), "in part")


def _within(effects: Iterable[Effect], low: float, high: float = math.inf) -> str:
    """Say whether each change lies between two numbers: no where one clearly does not."""
    ends = [effect.ends for effect in effects]
    if any(most < low or high < least for least, most in ends):
        return "no"
    return "yes" if all(low <= least and most <= high for least, most in ends) else "cannot say"


def _best(standings: Sequence[Standing]) -> str:
    """Say whether those that [LD] finds best are; standings are in the order of their ranks."""
    ahead = {each.protocol: each.ahead for each in standings}
    others = set(ahead) - set(BEST)
    if not others or not set(BEST) <= set(ahead):
        return "cannot say"
    if all(ahead[protocol] & others for protocol in BEST):
        return "no"
    if set(list(ahead)[: len(BEST)]) == set(BEST) and any(set(BEST) <= ahead[other] for other in others):
        return "yes"
    clear = any(ahead[protocol] & others for protocol in BEST) or any(ahead[other] & set(BEST) for other in others)
    return "in part" if clear else "cannot say"


def _listed(effects: Effects, metrics: Iterable[str], *, worst: bool = False) -> str:
    said = []
    for metric in (metric for metric in metrics if metric in effects):
        effect = effects[metric]
        clear = "" if effect.sign else "?"
        least = f" (worst {change(metric, effect.worst)})" if worst and effect.cells > 1 else ""
        said.append(f"{_short(metric)} {change(metric, effect.mean)}{clear}{least}")
    return ", ".join(said)


def _short(metric: str) -> str:
    return MEASURES[metric].short or {"auc_hard": "AUC*"}.get(metric, MEASURES[metric].title)
