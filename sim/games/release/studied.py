"""[LD]'s three questions on a page and in a terminal: the paper's claims, and the answers from its figures and a run's.

[LD]: Arcolezi, Makhlouf, Palamidessi, DBSec 2023, section 5.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from sim.games.release.columns import MEASURES, change, protocol_title, signed
from sim.games.release.questions import FAIRNESS, UNIFORM, UTILITY, Effect, Effects, ProtocolRank, ReleaseFindings
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet
from sim.report.notation import MISSING, plural
from sim.report.page import PageSection

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sim.report.drawing import Figure

_NEGLIGIBLE = 0.01
"""Largest negligible change, one point: [LD] calls Adult's loss of utility negligible, "only ~1%"."""

_BEST = ("grr", "ss")
"""The protocols whose trade-off [LD] finds best."""

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
"""The rules by which answers are given, as a page explains them."""

_ASKED = {
    "RQ1": "does a release make models fairer, and what does it cost?",
    "RQ2": "which split of epsilon harms less?",
    "RQ3": "which protocol is best?",
}

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
"""[LD]'s claims by question, and by data set where it makes a separate one."""

_ALIKE = "LSAC"

Told = Sequence[tuple[str, ReleaseFindings]]
"""Labels and answers: the label names the source of the figures or the part of a run, "" where there is one alone."""


def sections(data: str, labelled: Told, figures: Sequence[Figure]) -> tuple[PageSection, ...]:
    """Return a page's sections on one data set: the questions, the protocols, and the drawn figures, if any."""
    own = [(label, answered) for label, answered in labelled if answered.data == data]
    said = []
    for (_, question), found in _by_question(own).items():
        said.append(f"{question}: {_ASKED[question]} Paper: {_claim(question, data)}.")
        said += [f"{question}, {label or 'here'}: {text}" for label, text in found]
    changes = _changes(own)
    standings = [(label, each) for label, answered in own for each in answered.standings]
    ranks = Sheet("", "", Swept(()), standings, _RANKS, linked=False)
    place = "".join(letter if letter.isalnum() else "-" for letter in data)
    made = []
    # A single cell is no study.
    if changes.rows or ranks.rows:
        table = changes.on_page() if changes.rows else None
        made.append(
            PageSection(f"questions-{place}", f"The paper's questions on {data}", conclusions=said, table=table)
        )
    if ranks.rows:
        made.append(PageSection(f"protocols-{place}", f"Protocols on {data}", table=ranks.on_page()))
    if figures:
        made.append(PageSection(f"figures-{place}", f"Figures of {data}", figures=figures))
    return tuple(made)


def terminal(labelled: Told) -> Iterator[RenderableType]:
    """Yield the verdicts laid out for a terminal of 80 columns."""
    for (data, question), found in _by_question(labelled).items():
        yield Text(f"{question}, {data}: {_ASKED[question]}", style="bold")
        for label, text in (("paper", _claim(question, data)), *found):
            yield Padding(Text(f"{label or 'here'}: {text}"), (0, 0, 0, 2), expand=False)


def _by_question(labelled: Told) -> dict[tuple[str, str], list[tuple[str, str]]]:
    gathered: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for label, answered in labelled:
        for question, text in verdicts(answered).items():
            gathered.setdefault((answered.data, question), []).append((label, text))
    return gathered


def _claim(question: str, data: str) -> str:
    return _CLAIMS.get((question, data), _CLAIMS[question])


def verdicts(answered: ReleaseFindings) -> dict[str, str]:
    """Return the verdict on each question, from one data set's figures."""
    return {"RQ1": _released(answered), "RQ2": _split(answered), "RQ3": _protocols(answered)}


_NO_SEED = "cannot say: in no seed are there"


def _released(answered: ReleaseFindings) -> str:
    effects = answered.released
    if not effects:
        return f"{_NO_SEED} a clean trial"
    cost = _within([effects[key] for key in UTILITY], -_NEGLIGIBLE)
    said = [
        f"fairer: {_better(effects, FAIRNESS)}; cost negligible: {cost}.",
        f"Change, + is better: {_listed(effects, FAIRNESS)}; {_listed(effects, (*UTILITY, 'auc'), worst=True)}.",
    ]
    if answered.dropped:
        said.append(f"Dropping the columns instead: {_listed(answered.dropped, ('sp', *UTILITY))}.")
    first = next(iter(effects.values()))
    return " ".join([*said, f"{plural(first.cells, 'cell')}, {plural(first.seeds, 'seed')}."])


def _split(answered: ReleaseFindings) -> str:
    if not answered.split:
        return f"{_NO_SEED} k-based trials and others"
    said = []
    for other, effects in answered.split.items():
        first = next(iter(effects.values()))
        if answered.data == _ALIKE and other == UNIFORM:
            said.append(f"alike: {_within(effects.values(), -_NEGLIGIBLE, _NEGLIGIBLE)}.")
        else:
            against = "" if other == UNIFORM else f"Against {other}, "
            said.append(f"{against}fairer: {_better(effects, FAIRNESS)}; more useful: {_better(effects, UTILITY)}.")
        better = ", ".join(f"{_short(key)} {effects[key].better}" for key in (*FAIRNESS, *UTILITY) if key in effects)
        said.append(f"k-based is better in so many of {plural(first.cells, 'cell')}: {better}.")
    return " ".join([*said, f"{plural(first.seeds, 'seed')}."])


def _protocols(answered: ReleaseFindings) -> str:
    standings = answered.standings
    if not standings:
        return f"{_NO_SEED} trials of several protocols"
    said = [f"GRR and SS best: {_best(standings)}."]
    order = ", ".join(_ranked(each, "trade-off") for each in standings)
    said.append(f"Mean rank of {len(standings)} by trade-off: {order}.")
    for kind in ("utility", "fairness"):
        first, *_, last = sorted(standings, key=lambda standing: standing.ranks[kind])
        said.append(f"By {kind}: from {_ranked(first, kind)} to {_ranked(last, kind)}.")
    if answered.inconsistency:
        words = ", ".join(f"{kind} {signed(found.mean, 2)}" for kind, found in answered.inconsistency.items())
        said.append(f"Correlation of inconsistent profiles with a worse rank: {words}.")
    return " ".join([*said, f"{plural(standings[0].seeds, 'seed')}."])


def _ranked(standing: ProtocolRank, kind: str) -> str:
    return f"{protocol_title(standing.protocol)} {standing.ranks[kind]:.1f}"


def _better(effects: Effects, metrics: Iterable[str]) -> str:
    """Return whether a change is an improvement by these metrics: yes, no, in part or cannot say."""
    signs = {effects[metric].sign for metric in metrics if metric in effects} - {0}
    return {frozenset(): "cannot say", frozenset({1}): "yes", frozenset({-1}): "no"}.get(frozenset(signs), "in part")


def _within(effects: Iterable[Effect], low: float, high: float = math.inf) -> str:
    """Return whether each change lies between two numbers: no if one clearly does not."""
    ends = [effect.ends for effect in effects]
    if any(most < low or high < least for least, most in ends):
        return "no"
    return "yes" if all(low <= least and most <= high for least, most in ends) else "cannot say"


def _best(standings: Sequence[ProtocolRank]) -> str:
    """Return whether [LD]'s best protocols are best; `standings` is in the order of ranks."""
    ahead = {each.protocol: each.ahead for each in standings}
    others = set(ahead) - set(_BEST)
    if not others or not set(_BEST) <= set(ahead):
        return "cannot say"
    if all(ahead[protocol] & others for protocol in _BEST):
        return "no"
    if set(list(ahead)[: len(_BEST)]) == set(_BEST) and any(set(_BEST) <= ahead[other] for other in others):
        return "yes"
    clear = any(ahead[protocol] & others for protocol in _BEST) or any(ahead[other] & set(_BEST) for other in others)
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


_OF: Measure[Any] = Measure("of", of=lambda row: row[0], words=True, when=lambda rows: any(row[0] for row in rows))
"""The label of a row, where there are several."""

_RELEASED, _DROPPED = "RQ1: a release instead of clean values", "columns dropped"
_HEADS = {_RELEASED: ("change", "worst cell", "better", "seeds"), _DROPPED: ("change",)}


def _changes(labelled: Told) -> Sheet[Any]:
    rows: list[tuple[str, str, dict[str, Effect]]] = []
    for label, answered in labelled:
        against = {f"RQ2: k-based instead of {split}": found for split, found in answered.split.items()}
        sides = {_RELEASED: answered.released, _DROPPED: answered.dropped, **against}
        for metric in MEASURES:
            effects = {group: found[metric] for group, found in sides.items() if metric in found}
            if effects.keys() - {_DROPPED}:
                rows.append((label, metric, effects))
    columns = [_OF, Measure[Any]("metric", of=lambda row: MEASURES[row[1]].head, words=True)]
    groups = dict.fromkeys((_RELEASED, *(group for *_, effects in rows for group in effects)))
    for group in sorted(groups, key=lambda group: group not in _HEADS):
        for head in _HEADS.get(group, ("change", "better", "seeds")):
            columns.append(Measure(head, of=partial(_said, group, head), group=group))
    better = "± one standard error over seeds. Better: in so many cells; in brackets, clearly better and clearly worse."
    return Sheet("", "", Swept(()), rows, columns, (better,), linked=False)


def _said(group: str, head: str, row: tuple[str, str, Mapping[str, Effect]]) -> str:
    _, metric, effects = row
    effect = effects.get(group)
    if effect is None:
        return MISSING
    error = "" if effect.error is None else f" ± {change(metric, effect.error, finer=1).lstrip('+')}"
    return {
        "change": change(metric, effect.mean, finer=1) + error,
        "worst cell": change(metric, effect.worst, finer=1),
        "better": f"{effect.better} of {effect.cells} ({effect.clearly_better}, {effect.clearly_worse})",
        "seeds": str(effect.seeds),
    }[head]


_RANKS: Sequence[Measure[tuple[str, ProtocolRank]]] = (
    _OF,
    Measure("protocol", of=lambda row: protocol_title(row[1].protocol), words=True),
    *(
        Measure(kind, of=lambda row, kind=kind: row[1].ranks[kind], digits=2, group="mean rank")  # type: ignore[misc]
        for kind in ("trade-off", "utility", "fairness")
    ),
    Measure(
        "clearly ahead by trade-off",
        of=lambda row: ", ".join(map(protocol_title, sorted(row[1].ahead))) or MISSING,
        words=True,
    ),
)
"""RQ3's ranks, one row per protocol."""
