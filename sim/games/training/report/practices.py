"""What each practice changes: against plain training at the same epsilon, trial by trial."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from developer.training.play import PLAIN
from developer.training.practice import PRACTICES
from sim.games.game import Line
from sim.games.training.report.cells import (
    GROUPS,
    PRACTICE,
    axis_columns,
    cell_table,
    name_of,
    promised_of,
)
from sim.report.dot_plot import Panel, dot_plot
from sim.report.drawing import Figure
from sim.report.estimates import Estimate, estimate
from sim.report.notation import MISSING, as_float, number
from sim.report.page import Section
from sim.report.tables import Column, PageTable

_SIGNED = (-1.0, 1.0)


@dataclass(frozen=True)
class Change:
    """A practice less plain, on the same splits of the table.

    Attributes
    ----------
    cell : the practice's.
    accuracy, distance, minority : change of the accuracy, of the absolute risk difference, of the disadvantaged group's
        accuracy; None where plain was not played, or no trial in common.
    """

    cell: Line
    accuracy: Estimate | None
    distance: Estimate | None
    minority: Estimate | None


def changes(axes: Sequence[str], cells: Sequence[Line], lines: Sequence[Line]) -> list[Change]:
    """Hold each cell against the one that differs in the practice alone: plain.

    Parameters
    ----------
    axes : sequence of str
        The swept keys, the practice among them.
    cells : sequence of mapping
        Of models.
    lines : sequence of mapping
        The run's trials.
    """
    found = []
    for cell in cells:
        own = _trials(axes, cell, lines)
        plain = _trials(axes, {**cell, PRACTICE: PLAIN}, lines)
        both = [(own[trial], plain[trial]) for trial in own if trial in plain]
        if cell[PRACTICE] == PLAIN or not both:
            found.append(Change(cell, None, None, None))
            continue
        found.append(
            Change(
                cell,
                estimate([mine["accuracy"] - theirs["accuracy"] for mine, theirs in both], _SIGNED),
                estimate([abs(mine["gap"]) - abs(theirs["gap"]) for mine, theirs in both], _SIGNED),
                estimate([mine["accuracies"][0] - theirs["accuracies"][0] for mine, theirs in both], _SIGNED),
            )
        )
    return found


def _trials(axes: Sequence[str], swept: Line, lines: Sequence[Line]) -> dict[int, Line]:
    return {line["trial"]: line for line in lines if all(line[key] == swept[key] for key in axes)}


def sections(axes: Sequence[str], cells: Sequence[Line], lines: Sequence[Line]) -> Iterator[Section]:
    """Tell what practices changed, and what each step of theirs cost, where practices are swept."""
    told = changes(axes, cells, lines)
    columns = [
        Column("accuracy", [f"{cell['accuracy']:.3f}" for cell in cells]),
        Column("of the disadvantaged", [number(cell["accuracies"][0]) for cell in cells]),
        Column("risk difference", [f"{cell['gap']:.3f}".replace("-", "−") for cell in cells]),
        Column("accuracy", [_text(one.accuracy) for one in told], group="less plain"),
        Column("of the disadvantaged", [_text(one.minority) for one in told], group="less plain"),
        Column("|risk difference|", [_text(one.distance) for one in told], group="less plain"),
        Column("everybody", [number(promised_of(cell)) for cell in cells], group="ε promised to"),
        *(
            Column(group, [_promised(cell, place) for cell in cells], group="ε promised to")
            for place, group in enumerate(GROUPS)
        ),
    ]
    notes = (
        "Less plain: differences to plain training where all else is the same, trial by trial on the same splits of "
        "the table, with 95% intervals. The absolute risk difference is each trial's. What everybody is promised is "
        "the weaker of two groups' promises.",
    )
    figures = (_figure(axes, told),) if any(one.accuracy is not None for one in told) else ()
    names = dict.fromkeys(cell[PRACTICE] for cell in cells)
    yield Section(
        "practices",
        "Practices, against plain training",
        table=cell_table(axes, cells, columns, notes),
        figures=figures,
        after=[
            f"{name}: {PRACTICES[name].title}. It trades {PRACTICES[name].trades}." for name in names if name != PLAIN
        ],
    )
    yield _steps(axes, cells)


def _text(found: Estimate | None) -> str:
    return MISSING if found is None else found.text(3)


def _promised(cell: Line, group: int) -> str:
    both = cell["promised_groups"]
    return number(as_float(both[group]) if both else promised_of(cell))


def _steps(axes: Sequence[str], cells: Sequence[Line]) -> Section:
    rows = [(cell, *step) for cell in cells for step in cell["steps"] or [["none", None, None, MISSING]]]
    columns = [
        *axis_columns(axes, [cell for cell, *_ in rows]),
        Column("ε", [number(epsilon) for *_, epsilon, _, _ in rows]),
        Column("δ", [number(delta) for *_, delta, _ in rows]),
        Column("whose records", [of for *_, of in rows], numeric=False),
        Column("step", [what for _, what, *_ in rows], numeric=False),
    ]
    notes = (
        "Steps that read private rows and promise something, each with what it costs by itself, in the first trial. "
        "Together they cost what is promised, which may be less than the sum: an accountant composes them.",
    )
    return Section("steps", "What read private rows", table=PageTable(columns, notes))


def _figure(axes: Sequence[str], told: Sequence[Change]) -> Figure:
    shown = [one for one in told if one.accuracy is not None]
    panels = [
        Panel(title, {"": [(name_of(axes, one.cell), getattr(one, key)) for one in shown]}, level=0.0)
        for key, title in (
            ("accuracy", "accuracy"),
            ("minority", f"{GROUPS[0]}: accuracy"),
            ("distance", "|risk difference|"),
        )
    ]
    caption = (
        "Differences trial by trial, with 95% intervals. Of the first two panels right of the dotted line is better, "
        "of the third left of it."
    )
    title = "What each practice changes against plain training"
    return dot_plot("practices", title, caption, panels, level="as plain")
