"""The command ``fairwall run``."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fairwall.errors import UserError
from sim.cli.status import Interrupted
from sim.play import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sim.play.jobs import Jobs
    from sim.play.processes import Waiting
    from sim.play.runner import Run
    from sim.runs.folder import RunFolder
    from sim.runs.shard import Shard
    from sim.scenarios.sweep import Sweep


def run(
    scenario: Annotated[str, typer.Argument(help="A shipped scenario's name, or a TOML file.", metavar="SCENARIO")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Set a dotted key; a list sweeps it. May be repeated."),
    ] = None,
    trials: Annotated[int | None, typer.Option(help="How many trials a cell, in place of the scenario's.")] = None,
    seed: Annotated[int | None, typer.Option(help="The first trial's seed, in place of the scenario's.")] = None,
    out: Annotated[Path | None, typer.Option(help="The folder that gets the run's own folder, or else runs.")] = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Resume the run in this folder, with the same options.")
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", help="Play so many sessions at once.")] = 1,
    backend: Annotated[
        str, typer.Option(metavar="loky|dask|ray", help="Where they are played: on this machine, or on a cluster.")
    ] = "loky",
    shard: Annotated[
        str | None, typer.Option(metavar="I/N", help="Play the I-th of N parts; `results merge` joins them.")
    ] = None,
    secret: Annotated[
        Path | None, typer.Option(metavar="FILE", help="A new run's secret, in place of one that is drawn: 32 bytes.")
    ] = None,
    compliance: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Play with this program in compliance's place.")
    ] = None,
    developer: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Play with this program in the developer's place.")
    ] = None,
    adversary: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="Play with this program in the adversary's place.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Play a sweep of more than 10,000 cells.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be played, and play nothing.")] = False,
    progress: Annotated[
        str, typer.Option(metavar="bar|lines", help="How to show on stderr how many trials are finished.")
    ] = "bar",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Play a scenario: three processes, a referee, a report."""
    if out is not None and resume is not None:
        raise typer.BadParameter("--out is for a new folder, and --resume continues in an old one: give one of them")
    if secret is not None and resume is not None:
        raise typer.BadParameter(
            "--secret is for a new run, and --resume continues one that has its own: give one of them"
        )
    if progress not in ("bar", "lines"):
        raise typer.BadParameter(f"--progress: must be bar or lines, not {progress!r}")
    settings = settings or []
    base = [(key, value) for key, value in (("trials", trials), ("seed", seed)) if value is not None]
    overrides = [*settings, *(f"scenario.{key}={value}" for key, value in base)]
    if dry_run:
        _say_what_is_played(scenario, overrides, force=force, as_json=as_json)
        return
    parent = writable(out or Path("runs")) if resume is None else None
    named = {"compliance": compliance, "developer": developer, "adversary": adversary}
    others = {party: command for party, command in named.items() if command is not None}
    # Started first, and needed last: they import while this process does.
    # Sessions at once start their own.
    alone = jobs == 1 and backend == "loky"
    with processes.waiting([party for party in named if party not in others and alone]) as waiting:
        from sim.games import read
        from sim.scenarios.sweep import CELLS_MAX

        sweep = read(scenario, overrides, None if force else CELLS_MAX)
        from sim.play import programs
        from sim.play.jobs import Jobs, require
        from sim.runs.folder import RunFolder, given_key
        from sim.runs.shard import WHOLE, Shard

        programs.check(sweep, others)
        at_once = Jobs(jobs, backend)
        require(at_once)
        part = WHOLE if shard is None else Shard.parse(shard)
        if resume is not None:
            folder = RunFolder.resume(resume.resolve(), sweep, others, part)
        else:
            assert parent is not None
            part.require_key(sweep, secret)
            given = None if secret is None else given_key(secret)
            folder = RunFolder.create(parent, sweep.scenario.scenario.name, given)
        try:
            played = play(sweep, folder, others, waiting, at_once, part, as_json=as_json, lines=progress == "lines")
            from sim.runs.page import write_report

            page = write_report(played.folder)
        except Interrupted:
            again = ["fairwall", "run", scenario, *(f"--set={setting}" for setting in settings)]
            again += [f"--{key}={value}" for key, value in base]
            again += [f"--{party}={command}" for party, command in others.items()]
            again += [f"--jobs={jobs}"] if jobs != 1 else []
            again += [f"--backend={backend}"] if backend != "loky" else []
            again += [f"--shard={part}"] if shard is not None else []
            again += [f"--progress={progress}"] if progress != "bar" else []
            again += [*(["--force"] if force else []), *(["--json"] if as_json else []), "--resume", str(folder.path)]
            raise Interrupted(f"finished trials are kept: {shlex.join(again)}") from None
    if as_json:
        result = {
            "run_dir": str(played.folder),
            "scenario": sweep.scenario.scenario.name,
            "secret": sweep.scenario.scenario.secret,
            "trials": played.trials,
            "summary": played.summary,
        }
        typer.echo(json.dumps(result, allow_nan=False))
        return
    from rich.console import Console

    from sim.games import GAMES

    Console().print(GAMES[sweep.game].terminal(sweep, played.summary))
    if sweep.scenario.scenario.secret == "random":  # noqa: S105 - the name of a mode
        typer.echo("drawn from a random secret: only with the key in its folder does it repeat")
    for rows in played.left_out:
        typer.echo(str(rows))
    typer.echo(f"report: {page}")


def play(
    sweep: Sweep,
    folder: RunFolder,
    others: Mapping[str, str],
    waiting: dict[str, Waiting],
    jobs: Jobs,
    shard: Shard,
    *,
    as_json: bool,
    lines: bool = False,
) -> Run:
    """Play a run, and show on stderr how far it is."""
    from sim.play import runner

    with contextlib.ExitStack() as shown:
        update: Callable[[int], None] | None = None

        def show(finished: int) -> None:
            nonlocal update
            # Begun now, and its library imported: where the data are refused, one line is all there is to see.
            update = update or shown.enter_context(
                _progress_lines(sweep, shard) if lines else progress(sweep, shard, transient=as_json)
            )
            update(finished)

        return runner.play(sweep, folder, show, others, waiting, jobs, shard)


@contextlib.contextmanager
def progress(sweep: Sweep, shard: Shard, *, transient: bool) -> Iterator[Callable[[int], None]]:
    """Show on stderr how many trials are finished."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    total = _trials_of(sweep, shard)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=transient) as progress:
        task = progress.add_task(f"{sweep.scenario.scenario.name}: trials", total=total)
        yield lambda finished: progress.update(task, completed=finished)


@contextlib.contextmanager
def _progress_lines(sweep: Sweep, shard: Shard) -> Iterator[Callable[[int], None]]:
    """Write to stderr how many trials are finished, a line each time: for a program to read."""
    total = _trials_of(sweep, shard)
    yield lambda finished: typer.echo(f"trials {finished} of {total}", err=True)


def _trials_of(sweep: Sweep, shard: Shard) -> int:
    from sim.runs.trials import schedule

    return sum(1 for _ in shard.turns(schedule(sweep)))


def _say_what_is_played(scenario: str, overrides: Sequence[str], *, force: bool, as_json: bool) -> None:
    """Print which game, cells and trials a scenario has."""
    from sim.games import read
    from sim.scenarios.sweep import CELLS_MAX

    sweep = read(scenario, overrides, None if force else CELLS_MAX)
    table = sweep.scenario.scenario
    trials = sum(cell.scenario.scenario.trials for cell in sweep.cells)
    cells = [dict(cell.swept) for cell in sweep.cells]
    if as_json:
        told = {"scenario": table.name, "game": sweep.game, "about": table.about, "cells": cells, "trials": trials}
        typer.echo(json.dumps(told, allow_nan=False))
        return
    typer.echo(f"{table.name}: {table.about}")
    typer.echo(f"game: {sweep.game}; cells: {len(cells):,}; trials: {trials:,}")
    for key in sweep.scenario.axes:
        values = dict.fromkeys(str(cell[key]) for cell in cells)
        typer.echo(f"{key}: {', '.join(values)}")


def writable(folder: Path) -> Path:
    """Make sure that a folder is there or can be made, before anything is played for it.

    Raises
    ------
    UserError
    """
    try:
        folder = folder.resolve()
        nearest = next(path for path in (folder, *folder.parents) if path.exists())
    except (OSError, RuntimeError) as error:  # a name too long, a link to itself
        raise UserError(f"--out: {folder}: {getattr(error, 'strerror', None) or 'cannot be resolved'}") from None
    if not nearest.is_dir():
        raise UserError(f"--out: {nearest}: is a file; name a folder, which may be a new one")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise UserError(f"--out: {nearest}: cannot be written; name another folder")
    return folder
