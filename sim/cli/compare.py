"""The command ``fairwall compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.status import FAILED, WIDTH


def compare(
    folder: Annotated[Path, typer.Argument(help="A run's folder.", metavar="RUN")],
    file: Annotated[Path, typer.Argument(help="Published figures: CSV, a row a seed.", metavar="FILE")],
    everything: Annotated[bool, typer.Option("--all", help="Show every comparison, not only what differs.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="Also write a page with figures to this file.", metavar="HTML")
    ] = None,
) -> None:
    """Hold a run against published figures. Status 1: they differ."""
    from fairwall.errors import UserError

    if not (folder / "scenario.toml").is_file():
        raise UserError(f"{folder}: not a run's folder: it has no scenario.toml")
    from rich.console import Console

    from sim.games import GAMES, read
    from sim.runs.page import compared_page
    from sim.runs.trials import read_trials

    sweep = read(str(folder / "scenario.toml"))
    hold = GAMES[sweep.game].compare
    if hold is None:
        raise UserError(f"{folder}: the {sweep.game} game has no published figures seed by seed")
    lines = read_trials(folder / "trials.jsonl")
    if not lines:
        raise UserError(f"{folder}: no trial finished")
    try:
        compared = hold(sweep, lines, file, everything)
        text = None if page is None else compared_page(folder, file, compared.page())
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        raise UserError(f"{folder}: trials.jsonl is not as a run of its scenario writes it") from error
    if page is not None and text is not None:
        try:
            page.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UserError(f"--page {page}: cannot be written: {error.strerror}") from None
    Console(highlight=False, width=WIDTH).print(compared.shown)
    if page is not None:
        typer.echo(f"page: {page}")
    if not compared.agrees:
        raise typer.Exit(FAILED)
