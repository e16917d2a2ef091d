"""The figure of the disclosure game's page: each cell's advantage, its largest value, and the bound of epsilon."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sim.games.disclosure.report.columns import advantage_of
from sim.games.game import Line
from sim.report.cells import Swept
from sim.report.dot_plot import DotPanel, dot_plot
from sim.report.drawing import BLACK, GREY, Figure, MarkStyle
from sim.report.estimates import IntervalEstimate

_CAPTION = (
    "0 is a coin, 1 is certain. Filled marks are measured, with 95% intervals; hollow diamonds are the largest by the "
    "public law. A bar is the bound tanh(ε/2) where it holds; a cross stands in its place where the secret goes with "
    "other people's answers."
)


def draw(swept: Swept, summary: Sequence[Line], look: Mapping[str, MarkStyle]) -> Figure:
    """Draw a run's summary, one row per cell; `look` is by mode. At least one cell must have an advantage."""
    cells = [cell for cell in summary if cell["advantage"] is not None]
    drawn: dict[str, tuple[MarkStyle, Callable[[Line], IntervalEstimate | None]]] = {
        **{f"{mode}, measured": (look[mode], partial(_measured, mode)) for mode in (cell["mode"] for cell in cells)},
        "largest by the law": (
            MarkStyle(BLACK, "D", hollow=True, size=8.5),
            lambda cell: IntervalEstimate(cell["advantage_law"]),
        ),
        "bound tanh(ε/2)": (MarkStyle(GREY, "|", size=16), partial(_bound, True)),
        "tanh(ε/2), no bound here": (MarkStyle(GREY, "x", size=8), partial(_bound, False)),
    }
    series = {told: [(swept.name(cell), found(cell)) for cell in cells] for told, (_, found) in drawn.items()}
    return dot_plot(
        "advantage",
        "Advantage at guessing the secret",
        _CAPTION,
        [DotPanel("advantage", series, level=0.0)],
        look={told: own for told, (own, _) in drawn.items()},
        together=True,
        broad=5.8,
    )


def _measured(mode: str, cell: Line) -> IntervalEstimate | None:
    return advantage_of(cell) if cell["mode"] == mode else None


def _bound(applies: bool, cell: Line) -> IntervalEstimate | None:
    return IntervalEstimate(cell["bound"]) if cell["bound_applies"] is applies else None
