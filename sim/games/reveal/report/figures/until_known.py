"""The figure of the number of answers until everybody was known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.lines import Line2D

from sim.games.reveal.report.cells import ReportCell
from sim.games.reveal.report.figures.curves import label_of
from sim.games.reveal.report.until_known import until_known
from sim.report.drawing import BLACK, COLOURS, INCHES, Figure, hollow, legend, on_axes
from sim.report.notation import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def known_figures(cells: Sequence[ReportCell]) -> Iterator[Figure]:
    """Draw the fewest answers with which everybody was known, by strategy, and the theoretical minimum."""
    rows = until_known(cells)
    if len(rows) < 2:
        return
    printed = any(row.printed is not None for row in rows)
    places = np.arange(len(rows))

    def draw(axes: Axes) -> None:
        for place, row in zip(places, rows, strict=True):
            enough = row.fewest is not None
            answers = row.fewest if row.fewest is not None else row.tried
            axes.plot([row.bound, answers], [place, place], color="#bdbdbd", lw=1.2, zorder=1)
            axes.plot(row.bound, place, ls="", marker="|", ms=10, mew=1.6, color=BLACK)
            axes.plot(answers, place, ls="", marker="o" if enough else ">", ms=6, color=COLOURS[0 if enough else 1])
            if row.printed is not None:
                axes.plot(row.printed, place, ls="", marker="D", ms=8, mfc="none", mec=BLACK, mew=1.4, zorder=5)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: number(value))
        axes.set_yticks(places, [label_of(row.played) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel("answers, size query included")
        extra = [
            Line2D([], [], ls="", marker="o", ms=6, color=COLOURS[0], label="enough in every trial"),
            Line2D([], [], ls="", marker="|", ms=10, mew=1.6, color=BLACK, label="least ever"),
        ]
        if any(row.fewest is None for row in rows):
            extra.append(Line2D([], [], ls="", marker=">", ms=6, color=COLOURS[1], label="not enough"))
        if printed:
            extra.append(hollow("D", "printed in the paper, m"))
        legend(axes, extra)

    title = "Answers until everybody was known"
    caption = (
        "On a logarithmic axis. Dots: the fewest answers with which everybody was known in every trial; where the "
        "strategy stops by itself, the most that a trial took. Ticks: log2 C(n, n₀) over the bits of an answer, which "
        "nothing can undercut."
    )
    values = "; ".join(
        f"{label_of(row.played)}: {f'more than {row.tried}' if row.fewest is None else row.fewest}, "
        f"at least {row.bound}"
        for row in rows
    )
    inches = (INCHES[0], 1.5 + 0.26 * len(rows))
    yield Figure("known", title, caption, f"Dot chart. {title}. {values}.", on_axes(draw), inches)
