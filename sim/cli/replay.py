"""What ``fairwall replay`` does and prints."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from sim.games import GAMES, at_replay_size
from sim.games import read as read_sweep
from sim.play import runner
from sim.replay.captions import pace, watch
from sim.replay.differences import TOLERANCE
from sim.replay.other_decoder import Decoded, decoded
from sim.replay.playing import Replayed, again, alone
from sim.replay.recorded import Recorded, dealt_in, open_run
from sim.runs.folder import RunFolder
from sim.scenarios.scenario import plain
from sim.scenarios.sweep import shipped
from sim.transcripts.captions import shared


def show(run: str, *, party: str | None, decoder: str | None, speed: float | None, step: bool, as_json: bool) -> None:
    """Do what the command line asks, and end with status 1 where something differs.

    Parameters
    ----------
    run : str
        A run's folder, or the name of a shipped scenario, which is first played at its size for replays.
    party, decoder : str, optional
        Whom to run alone; which decoder to try.
    speed : float, optional
        How many messages a second to show, without playing.
    step : bool
        Whether to show the next message on Enter.
    as_json : bool
    """
    with tempfile.TemporaryDirectory(prefix="fairwall-replay-") as place:
        named = run in shipped() and not Path(run).is_dir()
        recorded = open_run(_at_replay_size(run, Path(place)) if named else Path(run))
        if step or speed is not None:
            # Nobody watches where there is no terminal.
            speed, step = (speed, step) if sys.stdout.isatty() else (None, False)
            captions = {**shared(), **GAMES[recorded.sweep.game].captions()}
            watch(recorded.sessions, captions, pace(speed=speed, step=step))
        elif decoder is not None:
            _show_decoded(decoder, decoded(recorded, decoder), as_json=as_json)
        elif party is not None:
            _show_replayed(recorded, party, alone(recorded, party), as_json=as_json)
        else:
            total = sum(len(dealt_in(session.values())) for session in recorded.finished)
            hidden = not sys.stderr.isatty()
            with Progress(console=Console(stderr=True), transient=True, disable=hidden) as progress:
                task = progress.add_task(f"{recorded.run}: trials", total=total)
                found = again(recorded, lambda played: progress.update(task, completed=played))
            _show_replayed(recorded, None, found, as_json=as_json)


def _show_replayed(recorded: Recorded, party: str | None, found: Replayed, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps({"run": recorded.run, "party": party, "same": found.difference is None, **asdict(found)}))
    else:
        for note in found.notes:
            typer.echo(f"note: {note}")
        who = f"{party} alone, " if party else ""
        typer.echo(f"{recorded.run}: {who}{found.trials} trials, {found.messages} messages: {_outcome(found)}")
    if found.difference is not None:
        raise typer.Exit(1)


def _outcome(found: Replayed) -> str:
    if found.difference is not None:
        return f"the first that differs is\n{found.difference}"
    return "the same bit for bit" if found.bit_for_bit else f"the same, floats up to {TOLERANCE:g}"


def _show_decoded(decoder: str, trials: Sequence[Decoded], *, as_json: bool) -> None:
    means = {
        key: float(np.mean([getattr(trial, key) for trial in trials])) if trials else None
        for key in ("leakage", "baseline_leakage", "recorded_leakage")
    }
    if as_json:
        lines = [asdict(trial) | {"epsilon": plain(trial.epsilon)} for trial in trials]
        typer.echo(json.dumps({"decoder": decoder, **means, "trials": lines}, allow_nan=False))
        return
    table = Table("trial", "strategy", "queries", "ε", f"leakage, {decoder}", "no query", "as recorded")
    for trial in trials:
        as_recorded = f"{trial.recorded_leakage:.1f} {trial.recorded_decoder}"
        numbers = (f"{trial.leakage:.1f}", f"{trial.baseline_leakage:.1f}", as_recorded)
        table.add_row(trial.deal_id, trial.strategy, str(trial.queries), f"{trial.epsilon:g}", *numbers)
    table.add_row("mean", "", "", "", *(f"{mean:.1f}" for mean in means.values() if mean is not None))
    Console(highlight=False).print(table)


def _at_replay_size(name: str, place: Path) -> Path:
    """Play a shipped scenario as small as it says for replays, in a folder, and give the run's own.

    Raises
    ------
    TrialFailed, PartyDied, DealError, DataError
    """
    sweep = at_replay_size(read_sweep(name))
    runner.check(sweep)
    folder = RunFolder.create(place, sweep.scenario.scenario.name)
    return runner.play(sweep, folder, lambda _: None).folder
