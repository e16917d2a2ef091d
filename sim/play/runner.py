"""A run: scenario, deal, parties, outcome, score, record; in that direction only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from fairwall.errors import UserError
from fairwall.tables.people import LeftOut
from sim.games import GAMES
from sim.games.cards import WRITTEN_DOWN
from sim.games.game import Line
from sim.play.faults import Injector
from sim.play.jobs import ONE, Jobs, play_at_once
from sim.play.launch import Start
from sim.play.processes import Waiting
from sim.play.session import play_turns
from sim.runs.folder import RunFolder
from sim.runs.shard import WHOLE, Shard
from sim.runs.trials import Lines, schedule
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


@dataclass(frozen=True)
class Means:
    """With what a run is played.

    Attributes
    ----------
    programs : the commands of programs that play in our parties' place, by party. See `sim.play.programs.check`.
    waiting : processes of ours that were started before, by party. They are taken out of it.
    jobs : how many sessions are played at once, and where.
    shard : which part of the run is played.
    """

    programs: Mapping[str, str] = field(default_factory=dict)
    waiting: MutableMapping[str, Waiting] = field(default_factory=dict)
    jobs: Jobs = ONE
    shard: Shard = WHOLE


class _Data:
    """A scenario's data, checked once; ``left_out`` is None before."""

    def __init__(self, sweep: Sweep) -> None:
        self._sweep = sweep
        self.left_out: tuple[LeftOut, ...] | None = None

    def check(self) -> None:
        """Check them, unless that is done."""
        if self.left_out is None:
            self.left_out = check(self._sweep)


def play(sweep: Sweep, folder: RunFolder, on_progress: Callable[[int], None], means: Means = Means()) -> Run:
    """Check a scenario's data, and play every trial that is not finished yet.

    A trial is a function of its cell, its seed and its number: it comes out alike in whatever processes it is played.

    Parameters
    ----------
    folder : RunFolder
        New and empty, or of an interrupted run of the same sweep.
    on_progress : callable
        Told how many trials are finished, once the data are checked and as each trial ends.

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
    data = _Data(sweep)
    if folder.begun:
        data.check()
    with folder.held():
        folder.write_scenario(sweep)
        confinement = folder.confinement()
        finished = folder.settle(sweep)
        missing = [turn for turn in means.shard.turns(schedule(sweep)) if turn[2] not in finished]

        def write(trials: Mapping[int, Lines], *, over: bool) -> Run:
            lines: list[Line] = [*chain.from_iterable(trials.values())]
            result = folder.write_result(
                sweep,
                lines,
                complete=over and len(trials) == len(finished) + len(missing),
                anchored=over,
                confinement=confinement,
                left_out=data.left_out or (),
                programs=means.programs,
                shard=means.shard,
            )
            return Run(folder.path, lines, result["summary"], data.left_out or ())

        def begin() -> None:
            data.check()
            on_progress(len(finished))

        def tell(played: int) -> None:
            on_progress(len(finished) + played)

        refused = False
        try:
            if not missing:
                begin()
            else:
                # Written first, so a killed run can be resumed.
                write(finished, over=False)
                if means.jobs == ONE:
                    # Reading a table takes about as long as three processes take to start.
                    start = Start(means.programs, means.waiting, begin)
                    with Injector(folder) if sweep.scenario.faults else contextlib.nullcontext() as injector:
                        play_turns(
                            sweep, folder, missing, tell, lambda _, layers: confinement.append(layers), injector, start
                        )
                else:
                    play_at_once(folder, missing, means.jobs, tell, confinement.append, means.programs, begin)
        except UserError:
            refused = data.left_out is None
            raise
        finally:
            if refused:
                folder.discard()
            else:
                run = write(folder.settle(sweep), over=True)
    return run
