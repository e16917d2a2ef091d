"""The command ``fairwall test protocol``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fairwall.errors import UserError


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
    from sim.transcripts.descriptors import descriptor_set

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
