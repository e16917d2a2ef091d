"""The figure of the disclosure game's page: each cell's advantage beside what the law allows and the bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sim.games.disclosure.report.columns import advantage_of
from sim.games.game import Line
from sim.report.cells import Swept
from sim.report.dot_plot import Panel, Row, dot_plot
from sim.report.drawing import BLACK, GREY, Figure, Look
from sim.report.estimates import Estimate

_CAPTION = (
    "0 is a coin, 1 is certain. Filled marks are measured, with 95% intervals; hollow diamonds are the largest by the "
    "public law. A bar is the bound tanh(ε/2) where it holds; a cross stands in its place where the secret goes with "
    "other people's answers."
)


def draw(swept: Swept, summary: Sequence[Line], look: Mapping[str, Look]) -> Figure:
    """Draw a run's summary, a row a cell; of at least one that has an advantage.

    Parameters
    ----------
    look : mapping of str to Look
        Of each mode.
    """
    cells = [cell for cell in summary if cell["advantage"] is not None]
    modes = dict.fromkeys(cell["mode"] for cell in cells)

    named = [(swept.name(cell), cell) for cell in cells]
    measured: dict[str, list[Row]] = {
        f"{mode}, measured": [(row, advantage_of(cell) if cell["mode"] == mode else None) for row, cell in named]
        for mode in modes
    }
    others = {
        "largest by the law": Look(BLACK, "D", hollow=True, size=8.5),
        "bound tanh(ε/2)": Look(GREY, "|", size=16),
        "tanh(ε/2), no bound here": Look(GREY, "x", size=8),
    }
    law: list[Row] = [(row, Estimate(cell["advantage_law"])) for row, cell in named]
    bounds: list[list[Row]] = [
        [(row, Estimate(cell["bound"]) if cell["bound_applies"] is applies else None) for row, cell in named]
        for applies in (True, False)
    ]
    series: dict[str, list[Row]] = {**measured, **dict(zip(others, (law, *bounds), strict=True))}
    title = "Advantage at guessing the secret"
    panels = [Panel("advantage", series, level=0.0)]
    return dot_plot(
        "advantage",
        title,
        _CAPTION,
        panels,
        look={f"{mode}, measured": look[mode] for mode in modes} | others,
        together=True,
        broad=5.8,
    )
