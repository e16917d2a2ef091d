"""The figure of the answers' errors against epsilon."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.lines import Line2D

from compliance.mechanisms import MECHANISMS
from sim.games.reveal.report.cells import ReportCell
from sim.games.reveal.report.figures.curves import LEAST_ERROR, curves_of, ticks_at, values_of
from sim.report.drawing import DASHES, GREY, INCHES, MARKERS, Figure, MarkStyle, hollow, legend, on_axes
from sim.report.notation import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def error_figures(cells: Sequence[ReportCell], look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Draw the median errors of the answers against epsilon."""
    noisy = [cell for cell in cells if cell.noisy and _median(cell) >= 0]
    places = sorted({cell.epsilon for cell in noisy})
    if len(places) < 2 or not any(_median(cell) for cell in noisy):
        return
    # Zero, and errors due to rounding, are drawn at the end of the logarithmic axis.
    rounded = any(_median(cell) < LEAST_ERROR for cell in noisy)
    lines = curves_of(noisy, without=("compliance.epsilon", "compliance.mechanism"))
    grouped: dict[str, list[ReportCell]] = {}
    mechanisms = dict.fromkeys(cell.mechanism for cell in noisy)
    for mechanism, (label, line) in itertools.product(mechanisms, lines.items()):
        for cell in (cell for cell in line if cell.mechanism == mechanism):
            named = [MECHANISMS[cell.mechanism].title] if len(mechanisms) > 1 or len(lines) == 1 else []
            name = ", ".join([*named, *([label] if len(lines) > 1 else [])])
            grouped.setdefault(name, []).append(cell)
    paper = any(cell.printed("query_error_mean") for cell in noisy)

    def draw(axes: Axes) -> None:
        seen: dict[str, int] = {}
        for label, line in grouped.items():
            mechanism = line[0].mechanism
            i = seen[mechanism] = seen.get(mechanism, -1) + 1
            # Colour by mechanism, as everywhere on the page; marks and dashes by line.
            own = look[mechanism]
            colour = own.colour
            marker, dash = (MARKERS[i % 7], DASHES[i % 7]) if i else (own.marker, own.dash)
            ordered = sorted(line, key=lambda cell: cell.epsilon)
            for cell in ordered:
                medians = [
                    max(trial["query_error_median"], LEAST_ERROR)
                    for trial in cell.trials
                    if trial["query_error_median"] is not None
                ]
                axes.plot(
                    [cell.epsilon] * len(medians), medians, ls="", marker=marker, ms=3, mew=0, color=colour, alpha=0.22
                )
                if printed := cell.printed("query_error_mean"):
                    axes.plot(cell.epsilon, printed, ls="", marker=marker, ms=8, mfc="none", mec=colour, mew=1.4)
            medians = [max(_median(cell), LEAST_ERROR) for cell in ordered]
            epsilons = [cell.epsilon for cell in ordered]
            axes.plot(epsilons, medians, color=colour, lw=1.8, ls=dash, marker=marker, ms=5.5, label=label)
        axes.set_xscale("log")
        axes.set_yscale("log")
        if rounded:
            axes.set_ylim(bottom=LEAST_ERROR / 3)
        axes.axhline(1, color=GREY, lw=0.9, ls=":")
        axes.set_xticks(places, list(ticks_at(places).values()))
        axes.minorticks_off()
        axes.yaxis.set_major_formatter(lambda value, _: number(value) if value >= 2 * LEAST_ERROR else _least(value))
        axes.set_xlabel("privacy budget of a trial, ε")
        axes.set_ylabel("error of an answer, median")
        extra = [Line2D([], [], color=GREY, lw=0.9, ls=":", label="1: the widest possible gap")]
        if paper:
            extra.append(hollow("o", "the paper's printed average"))
        legend(axes, extra)

    tall = (INCHES[0], INCHES[1] + 0.19 * max(0, len(grouped) - 4))
    title = "Error of the answers against the privacy budget"
    caption = "Median size of the error, on logarithmic axes. Light marks are single trials, lines their medians." + (
        " An error of 1 is as large as a gap can be: answers above the dotted line say nothing."
        + (f" Errors below {number(LEAST_ERROR)} stand at {number(LEAST_ERROR)}: rounding." if rounded else "")
        + (" Hollow marks are the paper's printed averages, in the colour and shape of their cell." if paper else "")
    )
    values = values_of(grouped, lambda cell: f"{number(_median(cell))} at ε = {number(cell.epsilon, 6)}")
    yield Figure("error", title, caption, f"Line chart. {title}. Median errors, {values}.", on_axes(draw), tall)


def _least(value: float) -> str:
    return f"≤ {number(LEAST_ERROR)}" if value >= LEAST_ERROR / 2 else ""


def _median(cell: ReportCell) -> float:
    return float(cell.summary.get("query_error_median", math.nan))
