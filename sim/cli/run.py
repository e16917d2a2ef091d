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
from fairwall.plugins import offer
from sim.cli.common import FAILED, Interrupted, Plugins, console, open_page
from sim.play import processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sim.play.runner import FinishedRun, Means
    from sim.runs.folder import RunFolder
    from sim.runs.trials import Shard
    from sim.scenarios.sweep import Sweep


Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Set a dotted key; a list sweeps it. May be repeated."),
]
Trials = Annotated[int | None, typer.Option(help="How many trials a cell, in place of the scenario's.")]
Seed = Annotated[int | None, typer.Option(help="The first trial's seed, in place of the scenario's.")]
Out = Annotated[Path | None, typer.Option(help="The folder that gets the run's own folder, or else runs.")]
Together = Annotated[int, typer.Option(metavar="N", help="Play so many sessions at once.")]


def run(
    scenario: Annotated[str, typer.Argument(help="A shipped scenario's name, or a TOML file.", metavar="SCENARIO")],
    settings: Settings = None,
    trials: Trials = None,
    seed: Seed = None,
    out: Out = None,
    resume: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Resume the run in this folder, with the same options.")
    ] = None,
    jobs: Together = 1,
    backend: Annotated[
        str, typer.Option(metavar="loky|dask|ray", help="Where they are played: on this machine, or on a cluster.")
    ] = "loky",
    shard: Annotated[
        str | None,
        typer.Option(metavar="I/N", help="Play the I-th of N parts only; fairwall results merge joins them."),
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
    plugin: Plugins = None,
    show: Annotated[bool, typer.Option("--open", help="Open the report in a browser.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Play a scenario: three processes, a referee, a report."""
    offer(plugin or ())
    _require_fitting(out, resume, secret, progress)
    overrides = settings_of(settings, trials, seed)
    if dry_run:
        _say_what_is_played(scenario, overrides, force=force, as_json=as_json)
        return
    place = writable(out or Path("runs")) if resume is None else resume.resolve()
    named = {"compliance": compliance, "developer": developer, "adversary": adversary}
    others = {party: command for party, command in named.items() if command is not None}
    usual = {"jobs": 1, "backend": "loky", "shard": None, "progress": "bar"}
    asked = others | {"jobs": jobs, "backend": backend, "shard": shard, "progress": progress}
    again = [f"--{option}={value}" for option, value in asked.items() if value != usual.get(option)]
    again += [f"--plugin={file}" for file in plugin or ()]
    again += [option for option, given in (("--force", force), ("--open", show), ("--json", as_json)) if given]
    # Started first, so that they import while this process does. Parallel sessions start their own processes.
    ours = [party for party in named if party not in others and jobs == 1 and backend == "loky"]
    with processes.waiting(ours) as waiting:
        sweep = _read(scenario, overrides, force=force)
        from sim.play import launch
        from sim.play.jobs import Jobs
        from sim.play.runner import Means
        from sim.runs.folder import RunFolder, given_key
        from sim.runs.trials import WHOLE, Shard

        launch.check(sweep, others)
        part = WHOLE if shard is None else Shard.parse(shard)
        means = Means(others, waiting, Jobs(jobs, backend), part)
        means.jobs.require()
        if resume is not None:
            folder = RunFolder.resume(place, sweep, others, part)
        else:
            part.require_key(sweep, secret)
            folder = RunFolder.create(
                place, sweep.scenario.scenario.name, None if secret is None else given_key(secret)
            )
        with resumable(scenario, overrides, folder, again):
            played, page = play(sweep, folder, means, as_json=as_json, lines=progress == "lines")
    _show(sweep, played, page, as_json=as_json)
    if show:
        open_page(page)
    for failure in played.failures:
        cell = ", ".join(f"{key} = {value}" for key, value in failure["cell"].items())
        typer.echo(f"not finished{f' ({cell})' if cell else ''}: {failure['why']}", err=True)
    if played.failures:
        raise typer.Exit(FAILED)


def _read(scenario: str, overrides: Sequence[str], *, force: bool) -> Sweep:
    """Read a scenario, and print on stderr what its settings change besides."""
    from sim.games import read
    from sim.scenarios.sweep import CELLS_MAX

    sweep = read(scenario, overrides, None if force else CELLS_MAX)
    for note in sweep.notes:
        typer.echo(note, err=True)
    return sweep


def _require_fitting(out: Path | None, resume: Path | None, secret: Path | None, progress: str) -> None:
    for option, given, why in (
        ("--out is for a new folder", out, "in an old one"),
        ("--secret is for a new run", secret, "one that has its own"),
    ):
        if resume is not None and given is not None:
            raise typer.BadParameter(f"{option}, and --resume continues {why}: give one of them")
    if progress not in ("bar", "lines"):
        raise typer.BadParameter(f"--progress: must be bar or lines, not {progress!r}")


@contextlib.contextmanager
def resumable(scenario: str, settings: Sequence[str], folder: RunFolder, options: Sequence[str] = ()) -> Iterator[None]:
    """Add to an interruption the command that resumes the run."""
    try:
        yield
    except Interrupted:
        again = ["fairwall", "run", scenario, *(f"--set={setting}" for setting in settings), *options]
        raise Interrupted(f"finished trials are kept: {shlex.join([*again, '--resume', str(folder.path)])}") from None


def play(
    sweep: Sweep, folder: RunFolder, means: Means, *, as_json: bool, lines: bool = False
) -> tuple[FinishedRun, Path]:
    """Play a run, show its progress on stderr, and write its page."""
    from sim.play import runner
    from sim.runs.page import write_report

    with contextlib.ExitStack() as shown:
        update: Callable[[int], None] | None = None

        def show(finished: int) -> None:
            nonlocal update
            # Begun only now, so that refused data give one line and no progress bar.
            update = update or shown.enter_context(
                _progress_lines(sweep, means.shard) if lines else progress(sweep, means.shard, transient=as_json)
            )
            update(finished)

        played = runner.play(sweep, folder, show, means)
    return played, write_report(played.folder)


def _show(sweep: Sweep, played: FinishedRun, page: Path, *, as_json: bool) -> None:
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

    from sim.games import GAMES
    from sim.report.terminal import in_terminal

    tables = GAMES[sweep.game].tables(sweep, played.trials, played.summary)
    console().print(in_terminal(sweep.scenario.scenario.name, tables))
    if sweep.scenario.scenario.secret == "random":  # noqa: S105 - the name of a mode
        typer.echo("drawn from a random secret: only with the key in its folder does it repeat")
    for rows in played.left_out:
        typer.echo(str(rows))
    typer.echo(f"report: {page}")


def settings_of(settings: Sequence[str] | None, trials: int | None, seed: int | None) -> list[str]:
    """Return all options as settings."""
    base = {"trials": trials, "seed": seed}
    return [*(settings or []), *(f"scenario.{key}={value}" for key, value in base.items() if value is not None)]


@contextlib.contextmanager
def progress(sweep: Sweep, shard: Shard, *, transient: bool) -> Iterator[Callable[[int], None]]:
    """Show on stderr the number of finished trials."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    total = _trials_of(sweep, shard)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=transient) as progress:
        task = progress.add_task(f"{sweep.scenario.scenario.name}: trials", total=total)
        yield lambda finished: progress.update(task, completed=finished)


@contextlib.contextmanager
def _progress_lines(sweep: Sweep, shard: Shard) -> Iterator[Callable[[int], None]]:
    """Write the number of finished trials to stderr, a line each time: for a program to read."""
    total = _trials_of(sweep, shard)
    yield lambda finished: typer.echo(f"trials {finished} of {total}", err=True)


def _trials_of(sweep: Sweep, shard: Shard) -> int:
    from sim.runs.trials import schedule

    return sum(1 for _ in shard.turns(schedule(sweep)))


def _say_what_is_played(scenario: str, overrides: Sequence[str], *, force: bool, as_json: bool) -> None:
    from sim.report.notation import several

    sweep = _read(scenario, overrides, force=force)
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
        typer.echo(f"{key}: {several(cell[key] for cell in cells)}")


def writable(folder: Path) -> Path:
    """Return the folder resolved; UserError if it neither exists nor can be made, before anything is played for it."""
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
