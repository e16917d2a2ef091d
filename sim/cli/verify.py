"""The command ``fairwall verify``."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from fairwall.plugins import offer
from sim.cli.common import FAILED, WIDTH, Plugins, run_folder

if TYPE_CHECKING:
    from sim.verify.finding import Verification


def verify(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or latest.", metavar="RUN", parser=run_folder)],
    public_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Check the seal, too, with this public key.")
    ] = None,
    plugin: Plugins = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
) -> None:
    """Check a run's transcripts. They are whole, agree, stay within the boundary and hold no protected attribute."""
    from sim.verify import check

    offer(plugin or ())
    found = check.verify(folder, public_key)
    if as_json:
        typer.echo(json.dumps(asdict(found) | {"well": not found.findings}))
    else:
        for finding in found.findings:
            typer.echo(str(finding))
        for note in found.notes:
            typer.echo(fill(f"note: {note}", WIDTH, subsequent_indent="      "))
        typer.echo(fill(_summary(found), WIDTH))
    if found.findings:
        raise typer.Exit(FAILED)


def _summary(verification: Verification) -> str:
    from sim.report.notation import plural

    findings = plural(len(verification.findings), "finding") if verification.findings else "no findings"
    return (
        f"{findings}: {plural(verification.transcripts, 'transcript')}, {plural(verification.messages, 'message')}; "
        f"{plural(verification.columns, 'protected column')} sought in {plural(verification.searched_bytes, 'byte')}; "
        f"{plural(verification.reports, 'report')} recomputed"
    )
