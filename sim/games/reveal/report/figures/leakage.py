"""Figures of leakage against the number of queries or another swept number, and of accuracy about a single target."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from compliance.mechanisms import MECHANISMS
from sim.games.reveal.report.cells import ReportCell
from sim.games.reveal.report.figures.curves import by_mechanism, curves_of, ticks_at, values_of
from sim.report.drawing import BLACK, COLOURS, DASHES, MARKERS, Figure, MarkStyle, hollow
from sim.report.line_plot import Axis, Curve, Level, LinePanel, line_plot
from sim.report.notation import as_float, number, symbol

_MANY = 3
"""Most lines of a figure that also shows single trials, and most mechanisms with a figure each."""
_COIN = Level(50, "50%: a coin")


def leakage_figures(cells: Sequence[ReportCell], look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Draw leakage against a varying number, or the accuracy about the one person aimed at."""
    # Strategies that stop once they know everybody are drawn by `known_figures`.
    cells = [cell for cell in cells if cell.scenario.queries != "needed"]
    axis = _leakage_axis(cells)
    if axis is None:
        return
    if all(cell.targeted == 1 for cell in cells):
        yield from _target_figures(cells, axis, look)
        return
    lowest = min(50.0, *(trial["leakage"] for cell in cells for trial in cell.trials))
    mechanisms = dict.fromkeys(cell.mechanism for cell in cells)
    # One figure per mechanism; with many mechanisms, one per attack, with a line per mechanism.
    many = len(mechanisms) > _MANY
    alike = curves_of(cells, without=(axis, "compliance.mechanism")) if many else by_mechanism(cells)
    for i, (label, group) in enumerate(alike.items(), start=1):
        lines = _drawable(group, axis, by_mechanism if many else _every_line(axis))
        if lines:
            ours = [cell for line in lines.values() for cell in line]
            if not many:
                label = MECHANISMS[ours[0].mechanism].title if any(cell.noisy for cell in ours) else "exact answers"
            yield _leakage_figure(f"leakage-{i}", axis, label, lines, lowest, look)


def _every_line(axis: str) -> Callable[[Iterable[ReportCell]], dict[str, list[ReportCell]]]:
    return lambda cells: curves_of(cells, without=(axis, "compliance.mechanism"))


def _drawable(
    cells: Iterable[ReportCell], axis: str, lines: Callable[[Iterable[ReportCell]], dict[str, list[ReportCell]]]
) -> dict[str, list[ReportCell]]:
    """Group cells into lines, leaving out lines with a single place."""
    groups = lines(cell for cell in cells if _finite(cell, axis)).values()
    long = [cell for line in groups if len({_place(cell, axis) for cell in line}) > 1 for cell in line]
    return lines(long)


def _leakage_axis(cells: Sequence[ReportCell]) -> str | None:
    """Return the varying number that leaves the fewest lines, queries before others."""
    if not cells:
        return None
    keys = dict.fromkeys(("developer.queries", *cells[0].swept))
    varying = [key for key in keys if len({_place(cell, key) for cell in cells if _finite(cell, key)}) > 1]
    return min(varying, key=lambda key: len(curves_of(cells, without=(key, "compliance.mechanism"))), default=None)


def _place(cell: ReportCell, key: str) -> float:
    return float(cell.queries) if key == "developer.queries" else as_float(cell.swept[key])


def _finite(cell: ReportCell, key: str) -> bool:
    return math.isfinite(_place(cell, key))


def _styles(lines: Mapping[str, Sequence[ReportCell]], look: Mapping[str, MarkStyle]) -> dict[str, MarkStyle]:
    """Return each line's look: the colour is its mechanism's, marks and dashes distinguish a mechanism's lines."""
    mechanisms = {label: line[0].mechanism for label, line in lines.items()}
    if len(set(mechanisms.values())) == len(lines):
        return {label: look[mechanism] for label, mechanism in mechanisms.items()}
    return {
        label: MarkStyle(look[mechanism].colour, MARKERS[i % 7], DASHES[i % 7])
        for i, (label, mechanism) in enumerate(mechanisms.items())
    }


def _leakage_figure(
    name: str,
    axis: str,
    of: str,
    lines: Mapping[str, Sequence[ReportCell]],
    lowest: float,
    look: Mapping[str, MarkStyle],
) -> Figure:
    cells = [cell for line in lines.values() for cell in line]
    single = len(lines) <= _MANY
    alone = len(lines) == 1 and all("leakage_answers" in cell.summary for cell in cells)
    places = sorted({_place(cell, axis) for cell in cells})
    paper = any(cell.printed("leakage") is not None for cell in cells)
    what = "number of metric queries, m" if axis == "developer.queries" else symbol(axis)
    features = all("leakage_features" in cell.summary for cell in cells)
    styles = _styles(lines, look)
    baseline = [(x, float(np.mean([c.baseline.mean for c in cells if _place(c, axis) == x]))) for x in places]
    unasked = "features alone" if features else "no query asked"
    curves = [Curve(baseline, MarkStyle(BLACK, "", (0, (6, 3))), unasked, style={"lw": 1.3})]
    for i, (label, line) in enumerate(lines.items()):
        own = styles[label]
        beside = [_beside(_place(cell, axis), i, len(lines), places, axis) for cell in line]
        for x, cell in zip(beside, line, strict=True):
            trials = [(x, trial["leakage"]) for trial in cell.trials if single]
            curves.append(Curve(trials, replace(own, size=3.5), joined=False, style={"mew": 0, "alpha": 0.28}))
            if (printed := cell.printed("leakage")) is not None:
                mark = MarkStyle(own.colour, "D", hollow=True, size=8)
                curves.append(Curve([(x, printed)], mark, joined=False, style={"zorder": 5}))
        means = [(x, cell.leakage.mean) for x, cell in zip(beside, line, strict=True)]
        curves.append(Curve(means, replace(own, size=5.5), label, style={"lw": 1.8}))
        if alone:
            answers = [(x, cell.summary["leakage_answers"]) for x, cell in zip(beside, line, strict=True)]
            curves.append(
                Curve(answers, MarkStyle(COLOURS[2], "^", "--", size=4.5), "answers alone", style={"lw": 1.3})
            )

    heading = f"Leakage against {'queries' if axis == 'developer.queries' else what}, {of}"
    seen = ("Light marks are single trials, lines their means. " if single else "Lines are means over trials. ") + (
        "Only leakage above the dashed line shows that answers gave something away."
    )
    hollow_ones = " Hollow diamonds are the paper's printed figures." if paper else ""
    apart = " Lines are set a little apart to be seen." if len(lines) > 1 else ""
    values = values_of(lines, lambda cell: f"{cell.leakage.mean:.1f}% at {number(_place(cell, axis), 6)}")
    few = axis == "compliance.epsilon" or len(places) <= 12
    return line_plot(
        name,
        heading,
        seen + hollow_ones + apart,
        f"Line chart. {heading}. Mean leakage, {values}.",
        [[LinePanel(curves, [_COIN])]],
        Axis(what, log=axis == "compliance.epsilon", ticks=ticks_at(places) if few else None),
        [Axis("leakage, %", low=math.floor((lowest - 3) / 5) * 5, high=103)],
        more=[hollow("D", "printed in the paper")] if paper else [],
    )


def _beside(place: float, line: int, lines: int, places: Sequence[float], axis: str) -> float:
    """Shift a mark of a line sideways, so that no line hides another."""
    step = 0.02 * (line - (lines - 1) / 2)
    if axis == "compliance.epsilon":
        return place * math.exp(step * math.log(places[-1] / places[0]))
    return place + step * (places[-1] - places[0])


def _target_figures(cells: Sequence[ReportCell], axis: str, look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Draw the accuracy about the one person aimed at; other people's guesses, and so leakage, do not change."""
    # If the person was always of one group, there is no mean over both groups.
    balanced = any("targeted_balanced" in cell.summary for cell in cells)
    key = "targeted_balanced" if balanced else "targeted_rate"
    lines = _drawable([cell for cell in cells if key in cell.summary], axis, by_mechanism)
    if not lines:
        return
    places = sorted({_place(cell, axis) for line in lines.values() for cell in line})

    def right(cell: ReportCell) -> float:
        return 100.0 * float(cell.summary[key])

    curves = []
    for i, (label, line) in enumerate(lines.items()):
        points = [(_beside(_place(cell, axis), i, len(lines), places, axis), right(cell)) for cell in line]
        curves.append(Curve(points, replace(look[line[0].mechanism], size=5.5), label, style={"lw": 1.8}))
    title = "How often the person aimed at is guessed right"
    what = (
        "The mean of the shares of either group that are guessed right, so that naming the larger group for everybody "
        "is worth 50%."
        if balanced
        else "The share of the trials in which that person’s group is guessed right; in all of them it was the same."
    )
    lowest = min(45.0, *(right(cell) - 3 for line in lines.values() for cell in line))
    values = values_of(lines, lambda cell: f"{right(cell):.1f}% at {number(_place(cell, axis), 6)}")
    yield line_plot(
        "target",
        title,
        f"{what} Lines are set a little apart to be seen.",
        f"Line chart. {title}, {values}.",
        [[LinePanel(curves, [_COIN] if balanced else [])]],
        Axis(symbol(axis), log=axis == "compliance.epsilon", ticks=ticks_at(places)),
        [Axis(f"target right, {'either group, %' if balanced else '% of trials'}", low=lowest, high=103)],
    )
