"""The command ``fairwall replay``."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import TYPE_CHECKING, Annotated

import typer

from fairwall.plugins import offer
from sim.cli.common import FAILED, WIDTH, Plugins, console, run_folder
from sim.play.processes import NAMES

if TYPE_CHECKING:
    from sim.replay.other_decoder import Decoded
    from sim.replay.playing import Replayed
    from sim.replay.recorded import Recorded


def replay(
    run: Annotated[
        str,
        typer.Argument(
            help="A run's folder, or latest; or a shipped scenario, to be played small and replayed.", metavar="RUN"
        ),
    ],
    party: Annotated[
        str | None,
        typer.Option(help="Run compliance, developer or adversary alone; the others answer from its transcript."),
    ] = None,
    decoder: Annotated[
        str | None, typer.Option(metavar="NAME", help="Try another decoder on the answers already given.")
    ] = None,
    speed: Annotated[
        float | None, typer.Option(min=0.001, help="Show the game, so many messages a second; play nothing.")
    ] = None,
    step: Annotated[bool, typer.Option("--step", help="Show the game, a message with each Enter.")] = False,
    plugin: Plugins = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of lines.")] = False,
) -> None:
    """Play a run again, and name the first message that differs."""
    offer(plugin or ())
    if sum([party is not None, decoder is not None, speed is not None or step]) > 1:
        raise typer.BadParameter("--party, --decoder and --speed or --step are different things: give one of them")
    if party not in (None, *NAMES):
        raise typer.BadParameter(f"--party must be compliance, developer or adversary, not {party!r}")
    from sim.games import GAMES
    from sim.replay.captions import pace, watch
    from sim.replay.other_decoder import decoded
    from sim.replay.playing import alone
    from sim.replay.recorded import open_run
    from sim.scenarios.sweep import shipped
    from sim.transcripts.captions import shared

    with tempfile.TemporaryDirectory(prefix="fairwall-replay-") as place:
        named = run in shipped() and not Path(run).is_dir()
        recorded = open_run(at_replay_size(run, Path(place)) if named else run_folder(run))
        if step or speed is not None:
            # Without a terminal nobody watches.
            speed, step = (speed, step) if sys.stdout.isatty() else (None, False)
            captions = {**shared(), **GAMES[recorded.sweep.game].captions()}
            watch(recorded.sessions, captions, pace(speed=speed, step=step))
        elif decoder is not None:
            _show_decoded(decoder, decoded(recorded, decoder), as_json=as_json)
        elif party is not None:
            _show_replayed(recorded, party, alone(recorded, party), as_json=as_json)
        else:
            _show_replayed(recorded, None, _again(recorded), as_json=as_json)


def _again(recorded: Recorded) -> Replayed:
    from rich.progress import Progress, TextColumn

    from sim.replay.playing import again
    from sim.replay.recorded import dealt_in

    total = sum(len(dealt_in(session.values())) for session in recorded.finished)
    hidden = not sys.stderr.isatty()
    columns = (TextColumn("{task.description}", markup=False), *Progress.get_default_columns()[1:])
    with Progress(*columns, console=console(stderr=True), transient=True, disable=hidden) as progress:
        task = progress.add_task(f"{recorded.run}: trials", total=total)
        return again(recorded, lambda played: progress.update(task, completed=played))


def _show_replayed(recorded: Recorded, party: str | None, replayed: Replayed, *, as_json: bool) -> None:
    if as_json:
        typer.echo(
            json.dumps({"run": recorded.run, "party": party, "same": replayed.difference is None, **asdict(replayed)})
        )
    else:
        from sim.report.notation import plural

        for note in replayed.notes:
            typer.echo(f"note: {note}")
        who = f"{party} alone, " if party else ""
        what = f"{plural(replayed.trials, 'trial')}, {plural(replayed.messages, 'message')}: {_outcome(replayed)}"
        typer.echo(fill(f"{recorded.run}: {who}{what}", WIDTH, break_on_hyphens=False))
        if replayed.difference is not None:
            typer.echo(replayed.difference)
    if replayed.difference is not None:
        raise typer.Exit(FAILED)


def _outcome(replayed: Replayed) -> str:
    from sim.transcripts.findings import TOLERANCE

    if replayed.difference is not None:
        return "the first that differs is"
    return "the same bit for bit" if replayed.bit_for_bit else f"the same, floats up to {TOLERANCE:g}"


def _show_decoded(decoder: str, trials: Sequence[Decoded], *, as_json: bool) -> None:
    from sim.scenarios.scenario import plain

    means = {
        key: fmean(getattr(trial, key) for trial in trials) if trials else None
        for key in ("leakage", "baseline_leakage", "recorded_leakage")
    }
    if as_json:
        lines = [asdict(trial) | {"epsilon": plain(trial.epsilon)} for trial in trials]
        typer.echo(json.dumps({"decoder": decoder, **means, "trials": lines}, allow_nan=False))
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    cells: dict[str, list[Decoded]] = {}
    for trial in trials:
        cells.setdefault(trial.cell, []).append(trial)
    table = Table("cell", box=SIMPLE_HEAD)
    for heading in ("trials", f"leakage, {decoder}", "no query", "as recorded"):
        table.add_column(heading, justify="right")
    for name, own in cells.items():
        as_recorded = f"{fmean(trial.recorded_leakage for trial in own):.1f} {own[0].recorded_decoder}"
        numbers = (fmean(trial.leakage for trial in own), fmean(trial.baseline_leakage for trial in own))
        table.add_row(name, str(len(own)), *(f"{number:.1f}" for number in numbers), as_recorded)
    if len(cells) > 1:
        table.add_row("all", str(len(trials)), *(f"{mean:.1f}" for mean in means.values() if mean is not None))
    console().print(table)


def at_replay_size(name: str, place: Path) -> Path:
    """Play a shipped scenario at its size for replays, as `sim.play.runner.play`; return the run's folder."""
    from sim import games
    from sim.play import runner
    from sim.runs.folder import RunFolder

    sweep = games.at_replay_size(games.read(name))
    folder = RunFolder.create(place, sweep.scenario.scenario.name)
    return runner.play(sweep, folder, lambda _: None).folder
