"""The command ``fairwall report``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(help="A run's folder.", metavar="FOLDER")],
) -> None:
    """Write a run's report again. The run may have been interrupted."""
    from fairwall.errors import UserError

    if not (folder / "scenario.toml").is_file():
        raise UserError(f"{folder}: not a run's folder: it has no scenario.toml")
    from sim.runs.page import write_report

    try:
        page = write_report(folder)
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        # Files that were played just now are as they should be; these may be anything.
        raise UserError(f"{folder}: trials.jsonl or result.json is not as a run of its scenario writes it") from error
    typer.echo(f"report: {page}")
