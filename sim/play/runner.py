"""A run: scenario, deal, parties, outcome, score, record; in that direction only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, MutableMapping, Sequence
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
from sim.runs.trials import WHOLE, Lines, Shard, schedule
from sim.scenarios.sweep import Sweep


@dataclass(frozen=True)
class FinishedRun:
    """A run that was played to its end.

    ``left_out`` are the rows of its tables that were in no deal; ``failures`` are the trials that plug-ins ended.
    """

    folder: Path
    trials: list[Line]
    summary: list[Line]
    left_out: tuple[LeftOut, ...]
    failures: Sequence[Line]


def check(sweep: Sweep) -> tuple[LeftOut, ...]:
    """Draw each cell's first deal, so that bad data are found early; return the table rows in no deal, by reason."""
    game = GAMES[sweep.game]
    game.require()
    deals = (game.deal(cell, 0, "check", WRITTEN_DOWN) for cell in sweep.cells)
    return tuple(dict.fromkeys(chain.from_iterable(deal.left_out for deal in deals)))


@dataclass(frozen=True)
class Means:
    """The programs, processes, parallelism and shard of a run. ``programs`` and ``waiting`` are as in `Start`."""

    programs: Mapping[str, str] = field(default_factory=dict)
    waiting: MutableMapping[str, Waiting] = field(default_factory=dict)
    jobs: Jobs = ONE
    shard: Shard = WHOLE


def play(sweep: Sweep, folder: RunFolder, on_progress: Callable[[int], None], means: Means = Means()) -> FinishedRun:
    """Check a scenario's data, and play every unfinished trial.

    A trial is a function of its cell, its seed and its number: its outcome does not depend on which processes play it.
    The folder is new and empty, or that of an interrupted run of the same sweep. ``on_progress`` gets the number of
    finished trials, once the data are checked and after each trial.
    """
    left_out = check(sweep) if folder.begun else None
    with folder.held():
        folder.write_scenario(sweep)
        confinement = folder.confinement()
        folder.forget_failures()
        finished = folder.settle(sweep)
        missing = [turn for turn in means.shard.turns(schedule(sweep)) if turn[2] not in finished]

        def write(trials: Mapping[int, Lines], *, over: bool) -> FinishedRun:
            lines: list[Line] = [*chain.from_iterable(trials.values())]
            result = folder.write_result(
                sweep,
                lines,
                complete=over and len(trials) == len(finished) + len(missing),
                anchored=over,
                confinement=confinement,
                left_out=left_out or (),
                programs=means.programs,
                shard=means.shard,
            )
            return FinishedRun(folder.path, lines, result["summary"], left_out or (), folder.failures())

        def begin() -> None:
            nonlocal left_out
            left_out = check(sweep) if left_out is None else left_out
            on_progress(len(finished))

        def tell(played: int) -> None:
            on_progress(len(finished) + played)

        refused = False
        try:
            if not missing:
                begin()
            else:
                # Written first, so that a killed run can be resumed.
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
            refused = left_out is None
            raise
        finally:
            if refused:
                folder.discard()
            else:
                run = write(folder.settle(sweep), over=True)
    return run
