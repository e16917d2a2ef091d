"""What is said on [LD]'s three questions, beside what [LD] says.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023, section 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fairwall.laws.local import LOCAL_LAWS
from sim.games.release.questions import FAIRNESS, UNIFORM, UTILITY, Answers, Effect, Standing
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

_RQ1 = "fairer, at a negligible cost in utility"
_RQ2 = "k-based is fairer and more useful where domains are large"
_RQ3 = "GRR and SS have the best trade-off, BLH the worst utility: others' profiles are inconsistent"
_CLAIMS = {
    ("RQ1", "adult"): "fairer, at a cost of about 1% of utility",
    ("RQ1", "ACSCoverage"): "fairer but by OAD, at a minor cost in utility",
    ("RQ2", "adult"): "k-based is fairer and more useful",
    ("RQ2", "ACSCoverage"): "k-based is fairer; more useful by the summary, less by section 5.2",
    ("RQ2", "LSAC"): "both are alike",
}
_ALIKE = "LSAC"


@dataclass(frozen=True)
class Verdict:
    """What is said on one question for one data set.

    Attributes
    ----------
    question : "RQ1", "RQ2" or "RQ3".
    claim : what [LD] says.
    found : whether that holds, with the numbers.
    """

    data: str
    question: str
    claim: str
    found: str


def verdicts(answered: Answers) -> tuple[Verdict, ...]:
    """Say what one data set's figures come to, question by question."""
    found = {"RQ1": _released(answered), "RQ2": _split(answered), "RQ3": _protocols(answered)}
    general = {"RQ1": _RQ1, "RQ2": _RQ2, "RQ3": _RQ3}
    return tuple(
        Verdict(answered.data, question, _CLAIMS.get((question, answered.data), general[question]), text)
        for question, text in found.items()
    )


def protocol_title(protocol: str) -> str:
    """Name a protocol, or a control."""
    return LOCAL_LAWS[protocol].title if protocol in LOCAL_LAWS else protocol


def _released(answered: Answers) -> str:
    effects = _by_metric(answered.released)
    if not effects:
        return f"cannot say: {_NO_SEED.format('a clean trial')}"
    said = [
        f"fairer: {_better(effects, FAIRNESS)}; cost negligible: {_negligible([effects[key] for key in UTILITY])}.",
        f"Change, + is better: {_listed(effects, FAIRNESS)}; {_listed(effects, (*UTILITY, 'auc'), worst=True)}.",
    ]
    dropped = _by_metric(answered.dropped)
    if dropped:
        said.append(f"Dropping the columns instead: {_listed(dropped, ('sp', *UTILITY))}.")
    return " ".join([*said, _of(answered.released)])


def _split(answered: Answers) -> str:
    if not answered.split:
        return f"cannot say: {_NO_SEED.format('k-based trials and others')}"
    said = []
    for other, found in answered.split.items():
        effects = _by_metric(found)
        if answered.data == _ALIKE and other == UNIFORM:
            said.append(f"alike: {_alike(found)}.")
        else:
            against = "" if other == UNIFORM else f"Against {other}, "
            said.append(f"{against}fairer: {_better(effects, FAIRNESS)}; more useful: {_better(effects, UTILITY)}.")
        better = ", ".join(f"{_short(key)} {effects[key].better}" for key in (*FAIRNESS, *UTILITY) if key in effects)
        said.append(f"k-based is better in so many of {plural(found[0].cells, 'cell')}: {better}.")
    return " ".join([*said, f"{plural(found[0].seeds, 'seed')}."])


def _protocols(answered: Answers) -> str:
    standings = answered.standings
    if not standings:
        return f"cannot say: {_NO_SEED.format('trials of several protocols')}"
    said = [f"GRR and SS best: {_best(standings)}."]
    order = ", ".join(_ranked(each, "trade-off") for each in standings)
    said.append(f"Mean rank of {len(standings)} by trade-off: {order}.")
    for kind in ("utility", "fairness"):
        first, *_, last = sorted(standings, key=lambda each: each.ranks[kind])
        said.append(f"By {kind}: from {_ranked(first, kind)} to {_ranked(last, kind)}.")
    if answered.inconsistency:
        words = ", ".join(f"{kind} {signed(found.mean, 2)}" for kind, found in answered.inconsistency.items())
        said.append(f"Correlation of inconsistent profiles with a worse rank: {words}.")
    return " ".join([*said, f"{plural(answered.standing_seeds, 'seed')}."])


def _ranked(standing: Standing, kind: str) -> str:
    return f"{protocol_title(standing.protocol)} {standing.ranks[kind]:.1f}"


_NO_SEED = "in no seed are there {}"


def _better(effects: Mapping[str, Effect], metrics: Iterable[str]) -> str:
    """Say whether a change makes things better by these metrics."""
    signs = {effects[metric].sign for metric in metrics if metric in effects} - {0}
    return {frozenset(): "cannot say", frozenset({1}): "yes", frozenset({-1}): "no"}.get(frozenset(signs), "in part")


def _negligible(effects: Sequence[Effect]) -> str:
    """Say whether a loss is negligible in each."""
    if any(effect.ends[1] < -NEGLIGIBLE for effect in effects):
        return "no"
    return "yes" if all(effect.ends[0] >= -NEGLIGIBLE for effect in effects) else "cannot say"


def _alike(effects: Sequence[Effect]) -> str:
    if any(min(map(abs, effect.ends)) > NEGLIGIBLE and effect.sign for effect in effects):
        return "no"
    return "yes" if all(max(map(abs, effect.ends)) <= NEGLIGIBLE for effect in effects) else "cannot say"


def _best(standings: Sequence[Standing]) -> str:
    """Say whether those that [LD] finds best are; standings are in the order of their ranks."""
    ahead = {each.protocol: each.ahead["trade-off"] for each in standings}
    others = set(ahead) - set(BEST)
    if not others or not set(BEST) <= set(ahead):
        return "cannot say"
    if all(ahead[protocol] & others for protocol in BEST):
        return "no"
    if set(list(ahead)[: len(BEST)]) == set(BEST) and any(set(BEST) <= ahead[other] for other in others):
        return "yes"
    clear = any(ahead[protocol] & others for protocol in BEST) or any(ahead[other] & set(BEST) for other in others)
    return "in part" if clear else "cannot say"


def _by_metric(effects: Sequence[Effect]) -> dict[str, Effect]:
    return {effect.metric: effect for effect in effects}


def _listed(effects: Mapping[str, Effect], metrics: Iterable[str], *, worst: bool = False) -> str:
    def words() -> Iterator[str]:
        for metric in metrics:
            if metric in effects:
                effect = effects[metric]
                clear = "" if effect.sign else "?"
                least = f" (worst {change(metric, effect.worst)})" if worst and effect.cells > 1 else ""
                yield f"{_short(metric)} {change(metric, effect.mean)}{clear}{least}"

    return ", ".join(words())


def _of(effects: Sequence[Effect]) -> str:
    return f"{plural(effects[0].cells, 'cell')}, {plural(effects[0].seeds, 'seed')}."


def _short(metric: str) -> str:
    return MEASURES[metric].short or {"auc_hard": "AUC*"}.get(metric, MEASURES[metric].title)
