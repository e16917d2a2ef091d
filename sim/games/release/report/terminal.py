"""The table at the end of a run of the release game, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from sim.games.game import Line
from sim.games.release.report.figures_of import FIGURES, text_of
from sim.report.notation import setting, symbol
from sim.scenarios.sweep import Sweep

_CAPTION = (
    "Means over trials, of the model on clean test rows; SPD, EOD and OAD: advantaged less disadvantaged, points; DI: "
    "disadvantaged over advantaged. guess: who is advantaged, of those trained on, guessed from the release alone and "
    "with features and labels, % right; known: the commoner group for everybody."
)


def terminal(sweep: Sweep, summary: Sequence[Line]) -> Table | Text:
    """Lay out a run's summary for a terminal of 80 columns."""
    if not summary:
        return Text("No trial finished.", style="dim")
    table = Table(
        title=Text(sweep.scenario.scenario.name),
        caption=Text(_CAPTION, style="dim"),
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        caption_justify="left",
    )
    axes = sweep.scenario.axes
    for key in axes:
        table.add_column(Text(symbol(key)), overflow="fold")
    for figure in FIGURES:
        if figure.in_terminal:
            table.add_column(Text(figure.short), justify="right", no_wrap=True)
    for cell in summary:
        texts = (text_of(figure, cell) for figure in FIGURES if figure.in_terminal)
        table.add_row(*(Text(setting(cell[key])) for key in axes), *map(Text, texts))
    return table
