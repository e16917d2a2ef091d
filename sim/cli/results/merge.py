"""The command ``fairwall results merge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def merge(
    folders: Annotated[list[Path], typer.Argument(help="The folders of all shards of one run.", metavar="FOLDER...")],
    out: Annotated[Path, typer.Option(help="The folder that gets the run's own folder.")] = Path("runs"),
) -> None:
    """Join the shards of a run into one folder. The shards stay unchanged."""
    from sim.cli.run import writable

    parent = writable(out)
    from sim.runs.merge import merge
    from sim.runs.page import write_report

    merged = merge(folders, parent)
    write_report(merged)
    typer.echo(f"run: {merged}")
