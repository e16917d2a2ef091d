"""The command ``fairwall list``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from fairwall.plugins import installed
from sim.cli.common import console

if TYPE_CHECKING:
    from sim.scenarios.sweep import Sweep


def list_scenarios(
    plugins: Annotated[bool, typer.Option("--plugins", help="List the installed plug-ins instead.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead of a table.")] = False,
) -> None:
    """List the shipped scenarios, or what is installed besides."""
    if plugins:
        found = [plugin.record for plugin in installed()]
        typer.echo(json.dumps(found) if as_json else _table(found))
        return
    from sim.games import read
    from sim.scenarios.sweep import minutes, shipped

    sweeps = {name: read(str(path)) for name, path in shipped().items()}
    about = {name: sweep.scenario.scenario.about for name, sweep in sweeps.items()}
    taken = minutes()
    needed = {name: _needed(sweep) for name, sweep in sweeps.items()}
    if as_json:
        listed = [
            {"name": name, "about": text, "minutes": taken.get(name), "needs": needed[name]}
            for name, text in about.items()
        ]
        typer.echo(json.dumps(listed))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table.grid("name", "about", padding=(0, 2))
    for name, text in about.items():
        table.add_row(name, Text(f"{text} ({'; '.join([_time(taken.get(name)), *needed[name]])})"))
    console().print(table)


def _table(plugins: Sequence[Mapping[str, str]]) -> str:
    lines = [f"{one['kind']:<11} {one['name']:<24} {one['source']}" for one in plugins]
    return "\n".join(lines) or "no package adds a plug-in"


def _needed(sweep: Sweep) -> list[str]:
    """Return what a scenario needs besides `fairwall[games]`, whichever of its cells is played."""
    from sim.datasets import FORMATS
    from sim.games import GAMES

    played = [cell.scenario for cell in sweep.cells]
    extras = dict.fromkeys(extra for one in played for extra in GAMES[sweep.game].needs(one))
    sources = dict.fromkeys(one.data.source.partition(":")[0] for one in played if hasattr(one, "data"))
    return [
        *(f"fairwall[{extra}]" for extra in extras),
        *(f"a file of {source}" for source in sources if source in FORMATS),
    ]


def _time(minutes: float | None) -> str:
    if minutes is None:
        return "time not measured"
    if minutes < 1:
        return "under a minute"
    if minutes < 90:
        return f"{minutes:.0f} min"
    return f"{minutes / 60:.0f} h"
