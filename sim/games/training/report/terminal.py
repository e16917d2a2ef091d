"""The table at the end of a run of the training game, for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Group
from rich.table import Table
from rich.text import Text

from sim.games.game import Line
from sim.games.training.report.cells import accuracy_of, gap_of, head
from sim.report.notation import setting
from sim.scenarios.sweep import Sweep


def terminal(sweep: Sweep, summary: Sequence[Line]) -> Group:
    """Lay out a run's summary for a terminal of 80 columns."""
    if not summary:
        return Group(Text("No trial finished.", style="dim"))
    table = Table(title=Text(sweep.scenario.scenario.name), box=box.SIMPLE_HEAD, pad_edge=False)
    for key in sweep.scenario.axes:
        table.add_column(Text(head(key)))
    for name in ("accuracy", "gap", "ε"):
        table.add_column(Text(name), justify="right", no_wrap=True)
    for cell in summary:
        if "accuracy" in cell:
            numbers = [accuracy_of(cell).text(3), gap_of(cell).text(3)]
        else:
            numbers = [", ".join(f"{error:.4f}" for error in cell[key]) for key in ("noise_errors", "sampling_errors")]
        told = [setting(cell[key]) for key in sweep.scenario.axes]
        table.add_row(*map(Text, (*told, *numbers, setting(cell["promised"]))))
    return Group(table)
