"""Figures of the people guessed right and wrong in one trial: a dot for each person."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sim.games.reveal.report.cells import ReportCell, rank
from sim.games.reveal.report.figures.curves import capital, people_shown
from sim.games.reveal.report.figures.trace import cell_words
from sim.report.drawing import BLACK, COLOURS, Figure, legend, on_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ACROSS = 20
"""Number of people in a row."""


def people_figures(cells: Sequence[ReportCell]) -> Iterator[Figure]:
    """Draw the people of two first trials, as the best attack guessed them: from exact answers, and from noisy ones."""
    traced = [cell for cell in cells if cell.trace and "guess" in cell.trace and cell.targeted > 1]
    for name, noisy in (("people-exact", False), ("people-noisy", True)):
        alike = [cell for cell in traced if cell.noisy is noisy]
        if alike:
            yield _figure(name, min(alike, key=rank))


def _figure(name: str, cell: ReportCell) -> Figure:
    assert cell.trace is not None, "chosen for it"
    group, guess = np.array(cell.trace["group"]), np.array(cell.trace["guess"])
    across, down = np.arange(len(group)) % _ACROSS, np.arange(len(group)) // _ACROSS
    wrong = guess != group

    def draw(axes: Axes) -> None:
        for value, label, marker in ((1, "advantaged", "o"), (0, "disadvantaged", "s")):
            own, colour = group == value, COLOURS[0 if value else 1]
            axes.plot(across[own], down[own], ls="", marker=marker, ms=8, mew=0, color=colour, label=label)
        axes.plot(
            across[wrong], down[wrong], ls="", marker="o", ms=13, mfc="none", mec=BLACK, mew=1.5, label="guessed wrong"
        )
        axes.set_xlim(-0.9, _ACROSS - 0.1)
        axes.set_ylim(down.max() + 0.9, -0.9)
        axes.set_axis_off()
        legend(axes, [])

    shown = people_shown(len(group), int(cell.trials[0]["n"]))
    title = "Who was found out, " + ("from noisy answers" if cell.noisy else "from exact answers")
    said = f"{cell_words(cell)}. {int(wrong.sum())} of {shown} {'is' if wrong.sum() == 1 else 'are'} guessed wrong."
    small = f"{int((wrong & (group == 0)).sum())} of the {int((group == 0).sum())} disadvantaged"
    caption = capital(f"{said} A ring is a wrong guess: of {small}, and else of the advantaged.")
    inches = (5.4, 0.9 + 0.36 * (int(down.max()) + 1))
    return Figure(name, title, caption, f"Grid of people. {title}: {caption}", on_axes(draw), inches)
