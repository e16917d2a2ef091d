"""The command ``fairwall compare``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.status import FAILED, WIDTH


def compare(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Runs' folders, and published figures: CSV, a row a seed.", metavar="RUN... FILE"),
    ],
    everything: Annotated[bool, typer.Option("--all", help="Show every comparison, not only what differs.")] = False,
    page: Annotated[
        Path | None, typer.Option(help="Also write a page with figures to this file.", metavar="HTML")
    ] = None,
) -> None:
    """Hold a run, or several together, against published figures. Status 1: they differ."""
    from fairwall.errors import UserError

    *folders, file = paths
    if not folders:
        raise UserError("RUN... FILE: give the folder of a run at least, and then the file of published figures")
    for folder in folders:
        if not (folder / "scenario.toml").is_file():
            raise UserError(f"{folder}: not a run's folder: it has no scenario.toml")
    from rich.console import Console

    from sim.games import GAMES, read
    from sim.runs.page import compared_page
    from sim.runs.trials import read_trials

    runs = []
    for folder in folders:
        sweep = read(str(folder / "scenario.toml"))
        hold = GAMES[sweep.game].compare
        if hold is None:
            raise UserError(f"{folder}: the {sweep.game} game has no published figures seed by seed")
        lines = read_trials(folder / "trials.jsonl")
        if not lines:
            raise UserError(f"{folder}: no trial finished")
        runs.append((sweep, lines))
    assert hold is not None, "just looked"
    try:
        compared = hold(runs, file, everything)
        text = None if page is None else compared_page(folders, file, compared.page())
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        where = ", ".join(map(str, folders))
        raise UserError(f"{where}: trials.jsonl is not as a run of its scenario writes it") from error
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
