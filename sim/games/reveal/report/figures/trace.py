"""Figures of one trial: its answers, and the vector reconstructed from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairwall.laws.bounding import metric_range
from sim.games.reveal.report.cells import ReportCell
from sim.games.reveal.report.figures.curves import capital, people_shown
from sim.report.drawing import COLOURS, GREY, Figure, legend, on_axes
from sim.report.notation import number, setting, symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FEW = 5
"""Fewest answers for a figure."""


def trace_figures(cells: Sequence[ReportCell]) -> Iterator[Figure]:
    """Draw the first answers of one trial, and the vectors that were reconstructed with and without noise."""
    traced = [cell for cell in cells if cell.trace]
    noisy = _telling(cell for cell in traced if cell.noisy)
    exact = _telling(cell for cell in traced if not cell.noisy)
    chosen = noisy or exact
    if chosen is not None and chosen.trace is not None and len(chosen.trace["exact"]) >= _FEW:
        yield _answers_figure(chosen)
    for name, cell in (("reconstruction-exact", exact), ("reconstruction-noisy", noisy)):
        # Other metrics are about some of the people only, and a trace does not record which.
        if cell is not None and cell.summary["metric"] == "sp" and cell.trace and "reconstruction" in cell.trace:
            yield _reconstruction_figure(name, cell)


def _telling(cells: Iterable[ReportCell]) -> ReportCell | None:
    """Return the cell with the largest budget and the most queries; the first of several."""
    return max(cells, key=lambda cell: (cell.epsilon, cell.queries), default=None)


def cell_words(cell: ReportCell) -> str:
    """Return a cell's description for a caption."""
    said = {"developer.queries", "compliance.epsilon", "compliance.mechanism"}
    rest = [f"{symbol(key)} = {setting(value)}" for key, value in cell.swept.items() if key not in said]
    return ", ".join([cell.noise, f"m = {cell.queries:,}", *rest, "first trial"])


def _answers_figure(cell: ReportCell) -> Figure:
    assert cell.trace is not None, "chosen for it"
    # A refused answer is NaN, and has no point.
    exact, released = (np.array(cell.trace[key], dtype=np.float64) for key in ("exact", "released"))
    places = np.arange(1, len(exact) + 1)
    name = str(cell.summary["metric"])
    kind = name.removeprefix("abs_").upper().replace("_", " ")
    metric = f"|{kind}|" if name.startswith("abs_") else kind
    lowest, highest = metric_range(name)
    impossible = (released < lowest) | (released > highest)

    def draw(axes: Axes) -> None:
        if cell.noisy:
            axes.vlines(places, exact, released, color="#bdbdbd", lw=0.8)
            axes.plot(places, released, ls="", marker="s", ms=4, color=COLOURS[1], label="released, with noise")
            axes.plot(places, exact, ls="", marker="o", ms=4, color=COLOURS[0], label="exact")
            if np.abs(released).max() > 3:
                axes.set_yscale("symlog", linthresh=1)
                axes.yaxis.set_major_formatter(lambda value, _: number(value))
            if impossible.any() and math.isfinite(highest):
                axes.axhspan(lowest, highest, color="#f1f1f1", lw=0, zorder=0, label="gaps that are possible")
        else:
            axes.plot(places, exact, ls="", marker="o", ms=4, color=COLOURS[0], label="released, which is exact")
        axes.set_xlabel("query")
        axes.set_ylabel(f"answer, {metric}")
        legend(axes, [])

    shown = f" The first {len(exact)} of {cell.queries:,} answers." if cell.queries > len(exact) else ""
    if cell.noisy:
        off = int((np.abs(released - exact) > np.abs(exact)).sum())
        outside = int(impossible.sum())
        seen = f"{off} of {len(exact)} released answers are off by more than the gap itself" + (
            f", and {outside} {'lies' if outside == 1 else 'lie'} outside the grey band, where no gap can be."
            if outside
            else "."
        )
    else:
        least, most = number(float(exact.min())), number(float(exact.max()))
        seen = f"All answers lie between {least} and {most}."
    title = "Answered queries"
    caption = f"{cell_words(cell)}. {seen}{shown}"
    return Figure("answers", title, capital(caption), f"Scatter chart. {title}: {caption}", on_axes(draw))


def _reconstruction_figure(name: str, cell: ReportCell) -> Figure:
    assert cell.trace is not None, "chosen for it"
    true, found = np.array(cell.trace["s"]), np.array(cell.trace["reconstruction"])
    first = cell.trials[0]
    height = 1 / first["n0"] + 1 / first["n1"]
    threshold = height / 2
    wrong = (found > threshold) != (true > threshold)
    places = np.arange(1, len(true) + 1)

    def draw(axes: Axes) -> None:
        if np.abs(found).max() > 5 * height:
            axes.set_yscale("symlog", linthresh=height)
            axes.yaxis.set_major_formatter(lambda value, _: number(value))
        axes.vlines(places, 0, true, color="#9a9a9a", lw=1.6)
        axes.plot(places, true, ls="", marker="_", ms=5, color="#7a7a7a", label="true")
        axes.axhline(threshold, color=GREY, lw=0.9, ls=":", label="threshold")
        right = ~wrong
        axes.plot(
            places[right], found[right], ls="", marker="o", ms=3.8, color=COLOURS[0], label="reconstructed, right"
        )
        if wrong.any():
            axes.plot(places[wrong], found[wrong], ls="", marker="X", ms=5.5, mew=0, color=COLOURS[1], label="wrong")
        axes.set_xlabel("person")
        axes.set_ylabel("s")
        legend(axes, [])

    shown = people_shown(len(true), first["n"])
    marked = (
        f"An orange cross is a person put into the wrong group: {int(wrong.sum())} of {shown}."
        if wrong.any()
        else f"{capital(shown)} are put into the right group."
    )
    title = "Reconstructed s, " + ("from noisy answers" if cell.noisy else "from exact answers")
    caption = f"{cell_words(cell)}. Stems are the truth: high for the disadvantaged, 0 for the advantaged. {marked}"
    return Figure(name, title, capital(caption), f"Stem chart. {title}: {caption}", on_axes(draw))
