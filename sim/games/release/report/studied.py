"""[LD]'s three questions on a page and in a terminal: what it says, what its figures say, and what a run's do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from sim.games.release.questions import Answers, Effect
from sim.games.release.report.columns import MEASURES, change
from sim.games.release.report.verdicts import ASKED, Verdict, protocol_title, verdicts
from sim.report.notation import MISSING
from sim.report.page import Section
from sim.report.tables import Column, PageTable

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
    changes, ranks = _changes(own), _ranks(own)
    place = "".join(letter if letter.isalnum() else "-" for letter in data)
    made = []
    # A single cell is no study.
    if changes.rows or ranks.rows:
        table = changes if changes.rows else None
        made.append(Section(f"questions-{place}", f"The paper's questions on {data}", conclusions=said, table=table))
    if ranks.rows:
        made.append(Section(f"protocols-{place}", f"Protocols on {data}", table=ranks))
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


def _changes(told: Told) -> PageTable:
    """Lay out RQ1's and RQ2's changes, a row a metric."""
    rows: list[tuple[str, Answers, str]] = []
    for label, answered in told:
        every = (*answered.released, *(effect for found in answered.split.values() for effect in found))
        rows += [(label, answered, key) for key in MEASURES if any(effect.metric == key for effect in every)]
    splits = dict.fromkeys(split for _, answered in told for split in answered.split)

    def of(effects: Sequence[Effect], metric: str) -> Effect | None:
        return next((effect for effect in effects if effect.metric == metric), None)

    released = [of(answered.released, metric) for _, answered, metric in rows]
    dropped = [of(answered.dropped, metric) for _, answered, metric in rows]
    columns = [
        *_labels([label for label, *_ in rows]),
        Column("metric", [MEASURES[metric].head for *_, metric in rows], numeric=False),
        *_effect_columns("RQ1: a release instead of clean values", released, worst=True),
    ]
    if any(dropped):
        columns.append(Column("change", [_change(each) for each in dropped], group="columns dropped"))
    for split in splits:
        found = [of(answered.split.get(split, ()), metric) for _, answered, metric in rows]
        columns += _effect_columns(f"RQ2: k-based instead of {split}", found)
    better = "± one standard error over seeds. Better: in so many cells; in brackets, clearly better and clearly worse."
    return PageTable(columns, (better,))


def _effect_columns(group: str, effects: Sequence[Effect | None], *, worst: bool = False) -> Iterator[Column]:
    yield Column("change", [_change(each) for each in effects], group=group)
    if worst:
        texts = [MISSING if each is None else change(each.metric, each.worst, finer=1) for each in effects]
        yield Column("worst cell", texts, group=group)
    better = [
        MISSING if each is None else f"{each.better} of {each.cells} ({each.clearly_better}, {each.clearly_worse})"
        for each in effects
    ]
    yield Column("better", better, group=group)
    yield Column("seeds", [MISSING if each is None else str(each.seeds) for each in effects], group=group)


def _change(effect: Effect | None) -> str:
    if effect is None:
        return MISSING
    error = "" if effect.error is None else f" ± {change(effect.metric, effect.error, finer=1).lstrip('+')}"
    return change(effect.metric, effect.mean, finer=1) + error


def _ranks(told: Told) -> PageTable:
    """Lay out RQ3's ranks, a row a protocol."""
    rows = [(label, each) for label, answered in told for each in answered.standings]
    columns = [
        *_labels([label for label, *_ in rows]),
        Column("protocol", [protocol_title(each.protocol) for _, each in rows], numeric=False),
    ]
    for kind in ("trade-off", "utility", "fairness"):
        columns.append(Column(kind, [f"{each.ranks[kind]:.2f}" for _, each in rows], group="mean rank"))
    ahead = [", ".join(map(protocol_title, sorted(each.ahead["trade-off"]))) or MISSING for _, each in rows]
    columns.append(Column("clearly ahead by trade-off", ahead, numeric=False))
    return PageTable(columns)


def _labels(labels: Sequence[str]) -> Iterator[Column]:
    """Say whose a row is, where there are several."""
    if any(labels):
        yield Column("of", labels, numeric=False)
