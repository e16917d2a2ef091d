"""The figures of the training game's page."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from sim.games.game import Line
from sim.games.training.cells import (
    GROUPS,
    OF,
    Change,
    Placed,
    kind_of,
    name_of,
    of_group,
    promised_of,
    value_text,
)
from sim.games.training.columns import RATES
from sim.games.training.told_rates import ToldRate, noise_scale
from sim.report.drawing import BLACK, DASHES, GREY, Figure, MarkStyle, looks
from sim.report.estimates import IntervalEstimate
from sim.report.front_plot import MARKS, Point, StepLine, front_plot
from sim.report.interval_plot import DotPanel, dot_plot
from sim.report.line_plot import Axis, Curve, line_plot
from sim.report.line_plot import LinePanel as Lines
from sim.report.notation import count, number

_AXES = ("risk difference, as an absolute value: less is fairer", "accuracy")


def tradeoff(axes: Sequence[str], cells: Sequence[Placed], look: Mapping[str, MarkStyle]) -> Figure:
    """Draw accuracy against risk difference, a mark per cell; `look` is by `kind_of`. There must be a cell."""
    kinds = dict.fromkeys(kind_of(axes, one.cell) for one in cells)
    first = next(iter(kinds))
    rest = [key for key in axes if not first or value_text(cells[0].cell, key) != first]
    points = [_point(one, name_of(rest, one.cell), look[kind_of(axes, one.cell)]) for one in cells]
    caption = (
        "A point a cell, with 95% intervals where there are five trials or more. Up and to the left is better. "
        "Filled: no other cell's means are at least as good in both; the stepped line is the best accuracy up to "
        "each risk difference. Hollow: dominated."
    )
    key = {kind: look[kind] for kind in kinds if kind}
    front = [StepLine([point for point in points if not point.dominated], DASHES[1])]
    return front_plot("tradeoff", "Accuracy against risk difference", caption, _AXES, points, front, key)


def frontier_figure(of: str, cells: Sequence[Placed]) -> Figure:
    """Draw the front over accuracy, everybody's or a group's, risk difference and epsilon: a line for each epsilon."""
    levels = sorted({one.epsilon for one in cells})
    marks = {level: MARKS[place % len(MARKS)] for place, level in enumerate(levels)}
    points = [_point(one, one.name, MarkStyle(BLACK, marks[one.epsilon])) for one in cells]
    fronts = [
        StepLine(
            [point for one, point in zip(cells, points, strict=True) if one.epsilon <= level],
            DASHES[place % 7],
            "nothing promised" if math.isinf(level) else f"ε at most {number(level)}",
            marks[level],
        )
        for place, level in enumerate(levels, 1)
    ]
    whose = "accuracy" if of == OF[0] else f"the {of} group's accuracy"
    title = f"The front over {whose}, risk difference and ε"
    caption = (
        "A point a cell, with 95% intervals where there are five trials or more; the mark is the ε promised to "
        "records. A stepped line is the best accuracy up to each risk difference among cells that promise its ε or a "
        "smaller one. Grey and hollow: dominated in all three."
    )
    return front_plot(f"frontier-{of}", title, caption, _AXES, points, fronts, {})


def _point(one: Placed, label: str, look: MarkStyle) -> Point:
    said = f"{one.name}: accuracy {one.accuracy.mean:.3f}, risk difference {one.distance.mean:.3f}, {one.verdict}"
    return Point(one.distance, one.accuracy, label, said, look, one.dominated)


_MOST = 30
"""Most cells drawn by group; with more, only those on the front are."""


def by_group(front: Sequence[Placed]) -> Figure:
    """Draw each group's accuracy and false positives, one row per cell."""
    drawn = front if len(front) <= _MOST else [one for one in front if not one.dominated]
    panels = [
        DotPanel(told, {g: [(one.name, of_group(one.cell, key, i)) for one in drawn] for i, g in enumerate(GROUPS)})
        for key, told in RATES.items()
        if key != "positives"
    ]
    few = "" if len(drawn) == len(front) else f" Of {len(front)} cells, those on the front."
    caption = f"Filled circles: the disadvantaged group. Hollow squares: the advantaged one. Bars: 95% intervals.{few}"
    return dot_plot("by-group", "Accuracy and false positives of each group", caption, panels)


def canaries(axes: Sequence[str], cells: Sequence[Line]) -> Figure:
    """Draw the epsilon that canaries refute and the promised one, one row per cell."""
    series = {
        told: [(name_of(axes, cell), None if math.isinf(of(cell)) else IntervalEstimate(of(cell))) for cell in cells]
        for told, of in (("refuted", lambda cell: cell["epsilon_refuted"]), ("promised", promised_of))
    }
    caption = "Filled circles: the largest ε that the guesses refute. Hollow squares: what was promised, if anything."
    return dot_plot("canaries", "ε that canaries refute, and ε promised", caption, [DotPanel("ε", series, level=0.0)])


def practices(axes: Sequence[str], changed: Sequence[Change]) -> Iterator[Figure]:
    """Draw the changes by practices, one row per cell; no figure where none can be compared with plain training."""
    shown = [one for one in changed if one.accuracy is not None]
    titles = {"accuracy": "accuracy", "minority": f"{GROUPS[0]}: accuracy", "distance": "|risk difference|"}
    panels = [
        DotPanel(title, {"": [(name_of(axes, one.cell), getattr(one, key)) for one in shown]}, level=0.0)
        for key, title in titles.items()
    ]
    title = "What each practice changes against plain training"
    caption = (
        "Differences trial by trial, with 95% intervals. Of the first two panels right of the dotted line is better, "
        "of the third left of it."
    )
    if shown:
        yield dot_plot("practices", title, caption, panels, level="as plain")


def rates(rows: Sequence[ToldRate], delta: float) -> Figure:
    """Draw the errors of told rates along the size of the group, with their theoretical values."""
    title = "Error of a group's told rate, along its size"
    caption = (
        "Filled: noise, a mark and a line for each ε of A; the line is its law c/n, at the group's mean rate. Hollow "
        "circles and the thick grey line: sampling, and √(r(1−r)/n). Where a line is above the grey one, noise "
        "dominates. Small groups may lie below their line: rates end at 0 and 1."
    )
    text = "; ".join(
        f"{GROUPS[one.group]}, {count(one.people)} people, ε {number(one.epsilon)}: "
        f"noise {number(one.noise, 2)}, sampling {number(one.sampling, 2)}"
        for one in rows
    )
    sizes = np.geomspace(min(one.people for one in rows) / 1.5, max(one.people for one in rows) * 1.5, 50)
    panels = [
        Lines(list(_rate_curves(group, rows, sizes, delta)), title=f"the {name} group")
        for group, name in enumerate(GROUPS)
    ]
    return line_plot(
        "told-rates",
        title,
        caption,
        f"Chart. {title}. {text}.",
        [panels],
        Axis("people of the group", log=True),
        [Axis("root mean square error", log=True)],
        inches=(8.6, 4.3),
        wide=True,
        columns=4,
    )


def epsilon_looks(rows: Sequence[ToldRate]) -> dict[float, MarkStyle]:
    """Return a look for each epsilon of A, the same in all figures of a page."""
    epsilons = sorted({one.epsilon for one in rows if one.epsilon is not None})
    return dict(zip(epsilons, looks(map(str, epsilons)).values(), strict=True))


def _rate_curves(group: int, rows: Sequence[ToldRate], sizes: Any, delta: float) -> Iterator[Curve]:
    own = [one for one in rows if one.group == group]
    rate = float(np.mean([one.rate for one in own]))
    law = list(zip(sizes, np.sqrt(rate * (1 - rate) / sizes), strict=True))
    yield Curve(law, MarkStyle(GREY, ""), "sampling, by its law", style={"lw": 2.6, "alpha": 0.7, "zorder": 1})
    # Sampling does not depend on epsilon: cells that differ in epsilon share their splits.
    drawn = sorted({(one.people, one.sampling) for one in own if one.sampling > 0})
    yield Curve(drawn, MarkStyle(BLACK, "o", hollow=True, size=7), "sampling", joined=False, style={"mew": 1})
    for epsilon, look in epsilon_looks(rows).items():
        noise = np.minimum(noise_scale(epsilon, delta, rate) / sizes, 1)
        points = sorted((one.people, one.noise) for one in own if one.epsilon == epsilon and one.noise > 0)
        yield Curve(list(zip(sizes, noise, strict=True)), look, style={"lw": 1.3, "marker": "", "zorder": 4})
        yield Curve([], look, f"noise, ε {number(epsilon)}", style={"ms": 5, "lw": 1.3})
        yield Curve(points, look, joined=False, style={"ms": 5, "zorder": 4})
