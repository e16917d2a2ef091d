"""[LD]'s three questions on a page and in a terminal: what it says, what its figures say, and what a run's do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from sim.games.release.questions import Answers, Effect, Standing
from sim.games.release.report.columns import MEASURES, change
from sim.games.release.report.verdicts import ASKED, Verdict, protocol_title, verdicts
from sim.report.cells import Swept
from sim.report.columns import Measure, Sheet
from sim.report.notation import MISSING
from sim.report.page import Section

if TYPE_CHECKING:
    from rich.console import RenderableType

    from sim.report.drawing import Figure

Told = Sequence[tuple[str, Answers]]
"""Whose figures, or which part of a run's, and what they say; "" where there is nothing to tell apart."""


def sections(data: str, told: Told, figures: Sequence[Figure]) -> tuple[Section, ...]:
    """Make a page's sections on one data set: the questions, the protocols, and what was drawn, if anything."""
    own = [(label, answered) for label, answered in told if answered.data == data]
    said = []
    for verdict, found in _by_question(own):
        said.append(f"{verdict.question}: {ASKED[verdict.question]} Paper: {verdict.claim}.")
        said += [f"{verdict.question}, {label or 'here'}: {text}" for label, text in found]
    changes = _changes(own)
    standings = [(label, each) for label, answered in own for each in answered.standings]
    ranks = Sheet("", "", Swept(()), standings, _RANKS, linked=False)
    place = "".join(letter if letter.isalnum() else "-" for letter in data)
    made = []
    # A single cell is no study.
    if changes.rows or ranks.rows:
        table = changes.on_page() if changes.rows else None
        made.append(Section(f"questions-{place}", f"The paper's questions on {data}", conclusions=said, table=table))
    if ranks.rows:
        made.append(Section(f"protocols-{place}", f"Protocols on {data}", table=ranks.on_page()))
    if figures:
        made.append(Section(f"figures-{place}", f"Figures of {data}", figures=figures))
    return tuple(made)


def terminal(told: Told) -> Iterator[RenderableType]:
    """Lay the verdicts out for a terminal of 80 columns."""
    for verdict, found in _by_question(told):
        yield Text(f"{verdict.question}, {verdict.data}: {ASKED[verdict.question]}", style="bold")
        for label, text in (("paper", verdict.claim), *found):
            yield Padding(Text(f"{label or 'here'}: {text}"), (0, 0, 0, 2), expand=False)


def _by_question(told: Told) -> Iterator[tuple[Verdict, list[tuple[str, str]]]]:
    """Gather what is said on a data set's question."""
    gathered: dict[tuple[str, str], tuple[Verdict, list[tuple[str, str]]]] = {}
    for label, answered in told:
        for verdict in verdicts(answered):
            _, found = gathered.setdefault((verdict.data, verdict.question), (verdict, []))
            found.append((label, verdict.found))
    yield from gathered.values()


_OF: Measure[Any] = Measure("of", of=lambda row: row[0], words=True, when=lambda rows: any(row[0] for row in rows))
"""Whose a row is, where there are several."""

_RELEASED, _DROPPED = "RQ1: a release instead of clean values", "columns dropped"
_HEADS = {_RELEASED: ("change", "worst cell", "better", "seeds"), _DROPPED: ("change",)}


def _changes(told: Told) -> Sheet[Any]:
    """Lay out RQ1's and RQ2's changes, a row a metric."""
    rows: list[tuple[str, str, dict[str, Effect]]] = []
    for label, answered in told:
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


_RANKS: Sequence[Measure[tuple[str, Standing]]] = (
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
"""RQ3's ranks, a row a protocol."""
