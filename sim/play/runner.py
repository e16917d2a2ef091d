"""A run: scenario, deal, parties, outcome, score, record; in that direction only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from fairwall.errors import UserError
from fairwall.tables.people import LeftOut
from sim.games import GAMES
from sim.games.cards import WRITTEN_DOWN
from sim.games.game import Line
from sim.play.faults import Injector
from sim.play.jobs import ONE, Jobs, play_at_once
from sim.play.processes import NOBODY, Waiting
from sim.play.session import play_turns
from sim.runs.folder import NONE, RunFolder
from sim.runs.shard import WHOLE, Shard
from sim.runs.trials import schedule
from sim.scenarios.sweep import Sweep


@dataclass(frozen=True)
class Run:
    """A run that was played to its end. ``left_out`` are the rows of its tables that were in no deal."""

    folder: Path
    trials: list[Line]
    summary: list[Line]
    left_out: tuple[LeftOut, ...]


def check(sweep: Sweep) -> tuple[LeftOut, ...]:
    """Draw each cell's first deal, so that bad data are found before anything is played.

    Returns
    -------
    tuple of LeftOut
        The rows of the scenario's tables that are in no deal, by reason.

    Raises
    ------
    DealError, DataError
    TrainingUnavailable
        If the game's models cannot be trained here.
    """
    game = GAMES[sweep.game]
    game.require()
    deals = (game.deal(cell, 0, "check", WRITTEN_DOWN) for cell in sweep.cells)
    return tuple(dict.fromkeys(chain.from_iterable(deal.left_out for deal in deals)))


def play(
    sweep: Sweep,
    folder: RunFolder,
    on_progress: Callable[[int], None],
    programs: Mapping[str, str] = NONE,
    waiting: MutableMapping[str, Waiting] = NOBODY,
    jobs: Jobs = ONE,
    shard: Shard = WHOLE,
) -> Run:
    """Check a scenario's data, and play every trial that is not finished yet.

    A trial is a function of its cell, its seed and its number: it comes out alike in whatever processes it is played.

    Parameters
    ----------
    sweep : Sweep
    folder : RunFolder
        New and empty, or of an interrupted run of the same sweep.
    on_progress : callable
        Told how many trials are finished, once the data are checked and as each trial ends.
    programs : mapping of str to str
        The commands of programs that play in our parties' place, by party. See `sim.play.programs.check`.
    waiting : mutable mapping of str to Waiting
        Processes of ours that were started before, by party. They are taken out of it.
    jobs : Jobs
        How many sessions are played at once, and where.
    shard : Shard
        Which part of the run is played.

    Raises
    ------
    DealError, DataError, TrainingUnavailable
        As `check` does. Nothing was played then, and a new folder is gone.
    ResumeError
        If another process is playing in the folder, or its key is gone.
    ConfinementMissing
        If a layer is not active that the scenario demands.
    TrialFailed
        If a trial does not finish: a party died, or took too long. What was finished is kept.
    PartyDied
        If a party does not start.
    TrialsMissing
        If one of several sessions was lost.
    OSError
        If the folder cannot be written.
    """
    new = not folder.begun
    left_out: tuple[LeftOut, ...] | None = None if new else check(sweep)

    with folder.held():
        folder.write_scenario(sweep)
        confinement = folder.confinement()
        finished = folder.settle(sweep)
        missing = [turn for turn in shard.turns(schedule(sweep)) if turn[2] not in finished]

        def write(trials: Sequence[Mapping[str, Any]], *, over: bool, complete: bool = False) -> dict[str, Any]:
            return folder.write_result(
                sweep,
                trials,
                complete=complete,
                anchored=over,
                confinement=confinement,
                left_out=left_out or (),
                programs=programs,
                shard=shard,
            )

        refused = False

        def before_the_first() -> None:
            nonlocal left_out
            if left_out is None:
                left_out = check(sweep)
            on_progress(len(finished))

        def tell(played: int) -> None:
            on_progress(len(finished) + played)

        try:
            if missing:
                # Written first, so a killed run can be resumed.
                write([*chain.from_iterable(finished.values())], over=False)
                if jobs == ONE:
                    with Injector(folder) if sweep.scenario.faults else contextlib.nullcontext() as injector:
                        play_turns(
                            sweep,
                            folder,
                            missing,
                            tell,
                            lambda _, layers: confinement.append(layers),
                            injector,
                            programs,
                            # Reading a table takes about as long as three processes take to start.
                            meanwhile=before_the_first,
                            waiting=waiting,
                        )
                else:
                    play_at_once(folder, missing, jobs, tell, confinement.append, programs, before_the_first)
            else:
                before_the_first()
        except UserError:
            refused = left_out is None
            raise
        finally:
            if refused:
                folder.discard()
            else:
                kept = folder.settle(sweep)
                trials: list[Line] = [*chain.from_iterable(kept.values())]
                result = write(trials, over=True, complete=len(kept) == len(finished) + len(missing))
    return Run(folder.path, trials, result["summary"], left_out or ())
