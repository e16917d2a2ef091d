"""The command ``fairwall test boundary``."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from sim.cli.found import console
from sim.cli.status import FAILED


def boundary(
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the diagram and the table of docs/protocol.md.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Print who may learn which field of the protocol. Status 1 if a field reaches somebody above their clearance."""
    from sim.transcripts.boundary import as_markdown, as_values, violations

    if as_json:
        typer.echo(json.dumps(as_values()))
    elif markdown:
        typer.echo(as_markdown())
    else:
        _print()
    found = violations()
    for violation in found:
        typer.echo(f"fairwall: {violation}", err=True)
    if found:
        raise typer.Exit(FAILED)


def _print() -> None:
    from rich.table import Table

    from fairwall.rpc.access import CALLERS, SERVED_BY
    from fairwall.rpc.identity import PARTIES
    from sim.transcripts.boundary import CLEARANCE, learns, level_name, server_of
    from sim.transcripts.methods import METHODS

    screen = console()
    for party in PARTIES:
        serves = ", ".join(prefix.split(".")[-1].strip("/") for prefix, by in SERVED_BY.items() if by == party)
        asks = sorted({server_of(name) for name in METHODS if party in CALLERS[name]})
        roles = [f"serves {serves}"] if serves else []
        roles += [f"asks {', '.join(asks)}"] if asks else []
        screen.print(f"{party}, cleared for {level_name(CLEARANCE[party])}: {'; '.join(roles)}")
        table = Table("may learn", "message", "fields", box=None, padding=(0, 2, 0, 0))
        for level, messages in learns(party).items():
            for message, fields in messages.items():
                table.add_row(level, message, ", ".join(fields))
                level = ""
        screen.print(table, "")
