"""The table at the end of a run of the game of groups, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group
from rich.text import Text

from sim.games.game import Line
from sim.games.groups.report.cells import head, leakage_of, value_of
from sim.report.terminal import frame
from sim.scenarios.sweep import Sweep

_CAPTION = (
    "leakage: balanced accuracy of the guess, in percent, with its 95% interval; chance: of a guess without answers; "
    "bound: what epsilon allows about one person."
)


def terminal(sweep: Sweep, summary: Sequence[Line]) -> Group:
    """Lay out a run's summary for a terminal of 80 columns."""
    if not summary:
        return Group(Text("No trial finished.", style="dim"))
    table = frame(sweep.scenario.scenario.name, _CAPTION)
    axes = sweep.scenario.axes
    for key in axes:
        table.add_column(Text(head(key)), overflow="fold", no_wrap=key != "groups.shares")
    for name in ("groups", "leakage", "chance", "bound"):
        table.add_column(Text(name), justify="right", no_wrap=True)
    for cell in summary:
        numbers = (f"{cell['groups']:g}", str(leakage_of(cell)), f"{cell['chance']:.1f}", f"{cell['bound']:.1f}")
        table.add_row(*(Text(value_of(cell[key])) for key in axes), *map(Text, numbers))
    return Group(table)
