"""The table at the end of a run of the game of groups, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from sim.games.game import Line
from sim.games.groups.report.cells import head, leakage_of, value_of
from sim.report.terminal import Fitted, frame, kept, left_out
from sim.scenarios.sweep import Sweep

_CAPTION = (
    "leakage: balanced accuracy of the guess, in percent, with its 95% interval; chance: of a guess without answers; "
    "bound: what epsilon allows about one person."
)


def terminal(sweep: Sweep, summary: Sequence[Line]) -> Fitted | Text:
    """Lay out a run's summary for a terminal."""
    if not summary:
        return Text("No trial finished.", style="dim")
    return Fitted(lambda room: _laid(sweep, summary, room))


def _laid(sweep: Sweep, summary: Sequence[Line], room: int) -> Table:
    columns = {
        "leakage": [str(leakage_of(cell)) for cell in summary],
        "chance": [f"{cell['chance']:.1f}" for cell in summary],
        "bound": [f"{cell['bound']:.1f}" for cell in summary],
        "groups": [f"{cell['groups']:g}" for cell in summary],
    }
    axes = sweep.scenario.axes
    keys = [[head(key), *(value_of(cell[key]) for cell in summary)] for key in axes]
    shown = kept(keys, columns, ("leakage",), room)
    table = frame(sweep.scenario.scenario.name, _CAPTION + left_out(columns, shown))
    for key in axes:
        table.add_column(Text(head(key)), overflow="fold")
    for name in shown:
        table.add_column(Text(name), justify="right", no_wrap=True)
    for row, cell in enumerate(summary):
        numbers = (texts[row] for texts in shown.values())
        table.add_row(*(Text(value_of(cell[key])) for key in axes), *map(Text, numbers))
    return table
