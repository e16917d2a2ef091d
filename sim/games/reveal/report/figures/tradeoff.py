"""The figure of leakage against the answers' error: a point for each mechanism and epsilon."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from sim.games.reveal.report.cells import ReportCell, best_attacks
from sim.games.reveal.report.figures.curves import LEAST_ERROR, by_mechanism, median_error, values_of
from sim.report.drawing import BLACK, GREY, Figure, MarkStyle, legend, on_axes
from sim.report.notation import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def tradeoff_figures(cells: Sequence[ReportCell], look: Mapping[str, MarkStyle]) -> Iterator[Figure]:
    """Draw the best attack's leakage against the median error of an answer."""
    points = [cell for cell in best_attacks(cells) if median_error(cell) is not None and cell.targeted > 1]
    told = [error for cell in points if (error := median_error(cell)) is not None and error > LEAST_ERROR]
    if len(points) < 2 or not told:
        return
    # An error of 0 is drawn to the left of all others on the logarithmic axis.
    nothing = min(told) / 4
    least = min(max(median_error(cell) or 0.0, nothing) for cell in points)
    lines = by_mechanism(points)
    baseline = float(np.mean([cell.baseline.mean for cell in points]))

    def draw(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.axhline(50, color=GREY, lw=0.9, ls=":")
        axes.axhline(baseline, color=BLACK, lw=1.1, ls=(0, (6, 3)), label="before asking")
        for label, line in lines.items():
            style = look[line[0].mechanism]
            ordered = sorted(line, key=lambda cell: cell.epsilon)
            places = [max(median_error(cell) or 0.0, nothing) for cell in ordered]
            leaked = [cell.leakage.mean for cell in ordered]
            axes.plot(
                places, leaked, color=style.colour, marker=style.marker, ls=style.dash, lw=1.2, ms=7,
                label=label,
            )  # fmt: skip
            # Labels on all points would overlap where everybody is known.
            ends = zip((places[0], places[-1]), (leaked[0], leaked[-1]), (ordered[0], ordered[-1]), strict=True)
            for place, leakage, cell in ends:
                axes.annotate(
                    "exact" if not cell.noisy else number(cell.epsilon, 6), (place, leakage),
                    textcoords="offset points", xytext=(6, 5), fontsize=8, color=style.colour,
                )  # fmt: skip
        low = min(50.0, *(cell.leakage.mean for cell in points))
        axes.set_ylim(math.floor((low - 3) / 5) * 5, 104)
        axes.margins(x=0.12)
        axes.minorticks_off()
        axes.xaxis.set_major_formatter(lambda value, _: number(value))
        if least < nothing * 2:
            axes.set_xticks([nothing, *(tick for tick in axes.get_xticks() if nothing * 2 < tick < axes.get_xlim()[1])])
            axes.xaxis.set_major_formatter(lambda value, _: "0" if value <= nothing else number(value))
        axes.set_xlabel("error of an answer, median")
        axes.set_ylabel("leakage of the best attack, %")
        legend(axes, [Line2D([], [], color=GREY, lw=0.9, ls=":", label="50%: a coin")])

    title = "What an answer is worth, and what it gives away"
    caption = (
        "A point for each mechanism and ε, the least and greatest of which stand beside it: the best attack of those "
        "played. Down and to the left is better: less given away, answers that are closer."
    )
    values = values_of(
        lines,
        lambda cell: f"{cell.leakage.mean:.1f}% at error {number(median_error(cell))} (ε = {number(cell.epsilon, 6)})",
    )
    yield Figure("tradeoff", title, caption, f"Scatter chart. {title}. {values}.", on_axes(draw), (9.0, 4.6), wide=True)
