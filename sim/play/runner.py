"""A run: scenario, deal, parties, outcome, score, record; in that direction only."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from fairwall.tables.people import LeftOut
from sim.games import GAMES
from sim.games.cards import WRITTEN_DOWN
from sim.games.game import Line
from sim.play.faults import Injector
from sim.play.session import play_turns
from sim.runs.folder import NONE, RunFolder
from sim.runs.trials import schedule
from sim.scenarios.sweep import Sweep


@dataclass(frozen=True)
class Run:
    """A run that was played to its end."""

    folder: Path
    trials: list[Line]
    summary: list[Line]


def check(sweep: Sweep) -> tuple[LeftOut, ...]:
    """Draw each cell's first deal, before any process starts, so that bad data are found before anything is played.

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
    left_out: Sequence[LeftOut] = (),
    programs: Mapping[str, str] = NONE,
) -> Run:
    """Play every trial of a scenario that is not finished yet.

    A trial is a function of its cell, its seed and its number: it comes out alike in whatever processes it is played.

    Parameters
    ----------
    sweep : Sweep
    folder : RunFolder
        New and empty, or of an interrupted run of the same sweep.
    on_progress : callable
        Told how many trials are finished, at the start and as each ends.
    left_out : sequence of LeftOut
        What `check` gave, to be told with the result.
    programs : mapping of str to str
        The commands of programs that play in our parties' place, by party. See `sim.play.programs.check`.

    Raises
    ------
    ResumeError
        If another process is playing in the folder, or its key is gone.
    ConfinementMissing
        If a layer is not active that the scenario demands.
    TrialFailed
        If a trial does not finish: a party died, or took too long. What was finished is kept.
    PartyDied
        If a party does not start.
    OSError
        If the folder cannot be written.
    """
    with folder.held():
        folder.write_scenario(sweep)
        finished = folder.settle(sweep)
        missing = [turn for turn in schedule(sweep) if turn[2] not in finished]
        confinement = folder.confinement()
        on_progress(len(finished))
        try:
            if missing:
                # Written first, so a killed run can be resumed.
                before = [*chain.from_iterable(finished.values())]
                folder.write_result(
                    sweep,
                    before,
                    complete=False,
                    anchored=False,
                    confinement=confinement,
                    left_out=left_out,
                    programs=programs,
                )
                with Injector(folder) if sweep.scenario.faults else contextlib.nullcontext() as injector:
                    play_turns(
                        sweep,
                        folder,
                        missing,
                        lambda played: on_progress(len(finished) + played),
                        confinement.append,
                        injector,
                        programs,
                    )
        finally:
            kept = folder.settle(sweep)
            trials = [*chain.from_iterable(kept.values())]
            complete = len(kept) == len(finished) + len(missing)
            result = folder.write_result(
                sweep, trials, complete=complete, confinement=confinement, left_out=left_out, programs=programs
            )
    return Run(folder.path, [*trials], result["summary"])
