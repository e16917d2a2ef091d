"""The figure of the disclosure game's page: each cell's advantage beside what the law allows and the bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

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

    def rows(found: Callable[[Line], Estimate | None]) -> list[Row]:
        return [(swept.name(cell), found(cell)) for cell in cells]

    def bound(cell: Line, applies: bool) -> Estimate | None:
        return Estimate(cell["bound"]) if cell["bound_applies"] is applies else None

    series = {
        "bound tanh(ε/2)": rows(lambda cell: bound(cell, True)),
        "tanh(ε/2), no bound here": rows(lambda cell: bound(cell, False)),
        "largest by the law": rows(lambda cell: Estimate(cell["advantage_law"])),
        **{
            f"{mode}, measured": rows(lambda cell, mode=mode: advantage_of(cell) if cell["mode"] == mode else None)  # type: ignore[misc]
            for mode in modes
        },
    }
    drawn = dict(zip(series, (Look(GREY, "|"), Look(GREY, "x"), Look(BLACK, "D", hollow=True)), strict=False))
    drawn |= {f"{mode}, measured": look[mode] for mode in modes}
    title = "Advantage at guessing the secret"
    panels = [Panel("advantage", series, level=0.0)]
    return dot_plot("advantage", title, _CAPTION, panels, look=drawn, together=True, broad=5.8)
