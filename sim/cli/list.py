"""The command ``fairwall list``."""

from __future__ import annotations


def list_scenarios() -> None:
    """List the shipped scenarios."""
    from rich.console import Console
    from rich.table import Table

    from sim.games import read
    from sim.scenarios.sweep import shipped

    table = Table.grid("name", "about", padding=(0, 2))
    for name, path in shipped().items():
        table.add_row(name, read(str(path)).scenario.scenario.about)
    Console(highlight=False).print(table)
