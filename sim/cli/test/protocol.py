"""The commands ``fairwall test protocol`` and ``fairwall test boundary``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from fairwall.errors import UserError
from sim.cli.common import FAILED, console


def protocol(
    descriptors: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write all messages and services there, as a FileDescriptorSet that needs no other file.",
        ),
    ] = None,
) -> None:
    """Print the protocol's services and methods. Who serves them, and who may call each."""
    if descriptors is None:
        _print()
        return
    from sim.transcripts.methods import descriptor_set

    try:
        descriptors.write_bytes(descriptor_set().SerializeToString(deterministic=True))
    except OSError as error:
        raise UserError(f"--descriptors {descriptors}: cannot be written: {error.strerror}") from None
    typer.echo(descriptors)


def _print() -> None:
    from fairwall.rpc.access import CALLERS, SERVED_BY
    from fairwall.rpc.turns import PROTOCOL_VERSION
    from sim.transcripts.methods import METHODS, short

    typer.echo(f"version {PROTOCOL_VERSION}; beside each method, who may call it")
    width = max(len(short(name)) for name in CALLERS)
    last = ""
    for name, callers in CALLERS.items():
        prefix = name.removesuffix(short(name))
        if prefix != last:
            typer.echo(f"\n{prefix.strip('/')}, served by {SERVED_BY.get(prefix, 'every server')}")
            last = prefix
        called = METHODS.get(name)
        streams = [
            *(["request"] if called is not None and called.client_streaming else []),
            *(["answer"] if called is not None and called.server_streaming else []),
        ]
        told = f"; {' and '.join(streams)} in a stream" if streams else ""
        typer.echo(f"  {short(name):<{width}}  {', '.join(sorted(callers))}{told}")


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
        _print_boundary()
    found = violations()
    for violation in found:
        typer.echo(f"fairwall: {violation}", err=True)
    if found:
        raise typer.Exit(FAILED)


def _print_boundary() -> None:
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
