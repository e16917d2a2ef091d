"""The command ``fairwall verify``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from sim.cli.status import FAILED


def verify(
    folder: Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN")],
    public_key: Annotated[
        Path | None, typer.Option("--seal", metavar="FILE", help="Check the seal, too, with this public key.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
) -> None:
    """Check a run's transcripts. They are whole, agree, stay within the boundary and hold no protected attribute."""
    from sim.verify import check

    found = check.verify(folder, public_key)
    if as_json:
        typer.echo(json.dumps(asdict(found) | {"well": not found.findings}))
    else:
        for finding in found.findings:
            typer.echo(str(finding))
        for note in found.notes:
            typer.echo(f"note: {note}")
        count = len(found.findings)
        typer.echo(
            f"{count or 'no'} finding{'s' * (count != 1)}: {found.transcripts} transcripts, {found.messages} messages; "
            f"{found.columns} protected columns sought in {found.searched_bytes:,} bytes; "
            f"{found.reports} reports recomputed"
        )
    if found.findings:
        raise typer.Exit(FAILED)
