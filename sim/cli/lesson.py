"""The command ``fairwall lesson``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sim.cli.common import open_page, run_folder


def lesson(
    run: Annotated[
        str | None,
        typer.Argument(help="A run's folder, or latest; left out, the scenario lesson is played first.", metavar="RUN"),
    ] = None,
    out: Annotated[Path, typer.Option(dir_okay=False, metavar="FILE", help="Where to write the page.")] = Path(
        "lesson.html"
    ),
    show: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
) -> None:
    """Write a page for a class, to guess and see who is found out."""
    from fairwall.errors import UserError
    from sim.games.reveal.lesson import lesson as page
    from sim.runs.side_by_side import played_in
    from sim.runs.trials import summarise

    if not out.parent.is_dir():
        raise UserError(f"--out: there is no folder {out.parent}")
    sweep, trials = played_in(run_folder(run) if run is not None else _played())
    out.write_text(page(sweep, trials, summarise(sweep, trials)), encoding="utf-8")
    typer.echo(f"page: {out}")
    if show:
        open_page(out)


def _played() -> Path:
    from sim.cli.run import play
    from sim.games import read
    from sim.play.runner import Means
    from sim.runs.folder import RunFolder

    sweep = read("lesson")
    folder = RunFolder.create(Path("runs"), "lesson")
    played, _ = play(sweep, folder, Means(), as_json=True)
    return played.folder
