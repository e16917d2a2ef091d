"""The figure of the disclosure game's page: each cell's advantage beside what the law allows and the bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.lines import Line2D

from sim.games.disclosure.report.cells import advantage_of, name_of
from sim.games.game import Line
from sim.report.drawing import BLACK, GREY, Figure, Look, canvas_svg
from sim.scenarios.sweep import Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

_TITLE = "Advantage at guessing the secret"
_CAPTION = (
    "0 is a coin, 1 is certain. Filled marks are measured, with 95% intervals; hollow diamonds are the largest by the "
    "public law. A thick bar is the bound tanh(ε/2) where it holds; a cross stands in its place where the secret goes "
    "with other people's answers."
)


def draw(sweep: Sweep, summary: Sequence[Line], look: Mapping[str, Look]) -> Figure:
    """Draw a run's summary, a row a cell; of at least one that has an advantage.

    Parameters
    ----------
    look : mapping of str to Look
        Of each mode.
    """
    summary = [cell for cell in summary if cell["advantage"] is not None]
    names = [name_of(sweep.scenario.axes, cell) for cell in summary]
    measured = [advantage_of(cell) for cell in summary]
    modes = {cell["mode"]: look[cell["mode"]] for cell in summary}

    def paint(canvas: Canvas) -> None:
        axes = canvas.add_subplot()
        for row, (cell, found) in enumerate(zip(summary, measured, strict=True)):
            low, high = (found.mean if end is None else end for end in (found.low, found.high))
            own = look[cell["mode"]]
            axes.plot([low, high], [row, row], color=own.colour, lw=1.2, zorder=2)
            axes.plot(found.mean, row, marker=own.marker, ms=5.5, color=own.colour, zorder=3)
            axes.plot(cell["advantage_law"], row, marker="D", ms=8, mfc="none", mec=BLACK, mew=1.1, zorder=4)
            if cell["bound_applies"]:
                axes.plot([cell["bound"]] * 2, [row - 0.36, row + 0.36], color=GREY, lw=3.2, zorder=1)
            else:
                axes.plot(cell["bound"], row, marker="x", ms=8, color=GREY, mew=1.4, zorder=1)
        axes.axvline(0, color=GREY, lw=0.9, ls=":")
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(min(-0.25, *(found.mean if found.low is None else found.low for found in measured)) - 0.03, 1.04)
        axes.set_xlabel("advantage")
        canvas.legend(handles=_legend(modes), loc="outside lower center", ncols=2, fontsize=9)

    told = "; ".join(
        f"{name}: {found.text(2)}, law {cell['advantage_law']:.2f}, "
        f"{'bound' if cell['bound_applies'] else 'no bound, tanh(ε/2) is'} {cell['bound']:.2f}"
        for name, found, cell in zip(names, measured, summary, strict=True)
    )
    picture = canvas_svg("advantage", paint, (8.0, 1.5 + 0.3 * len(summary)))
    return Figure("advantage", _TITLE, _CAPTION, f"Chart. {_TITLE}. {told}.", picture, wide=True)


def _legend(modes: Mapping[str, Look]) -> list[Line2D]:
    return [
        *(
            Line2D([], [], color=own.colour, marker=own.marker, ms=5.5, lw=1.2, label=f"{mode}, measured")
            for mode, own in modes.items()
        ),
        Line2D([], [], ls="", marker="D", ms=8, mfc="none", mec=BLACK, mew=1.1, label="largest by the law"),
        Line2D([], [], color=GREY, ls="", marker="|", ms=11, mew=3.2, label="bound tanh(ε/2)"),
        Line2D([], [], color=GREY, ls="", marker="x", ms=8, mew=1.4, label="tanh(ε/2), no bound here"),
    ]
