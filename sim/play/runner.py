"""A run: scenario, deal, parties, outcome, score, record; in that direction only."""

from __future__ import annotations

import contextlib
import itertools
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import grpc

from fairwall.game.v1.inference_service_pb2_grpc import add_InferenceServiceServicer_to_server
from fairwall.game.v1.referee_service_pb2 import GAME_INFERENCE, GAME_REVEAL
from fairwall.game.v1.referee_service_pb2_grpc import add_RefereeServiceServicer_to_server
from fairwall.learning.backend import require_pytorch
from fairwall.rpc import confine, server
from fairwall.rpc.recorder import Recorder, Recording
from sim.games.inference import deal as inference_deal
from sim.games.inference import record as inference
from sim.games.inference.referee import InferenceReferee
from sim.games.reveal import record as reveal
from sim.games.reveal.deal import deal
from sim.games.reveal.referee import Referee
from sim.games.table import Table
from sim.play import keys
from sim.play.faults import Injector
from sim.play.launch import ConfinementMissing, Party, launch
from sim.runs.folder import RunFolder, schedule
from sim.scenarios.sweep import Cell, Sweep

TRIAL_SECONDS = 1800.0
"""A trial that takes longer has hung."""


LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """A run that was played to its end."""

    folder: Path
    trials: list[dict[str, Any]]
    summary: list[dict[str, Any]]


def check(sweep: Sweep) -> None:
    """Draw each cell's first deal, before any process starts, so that bad data are found before anything is played.

    Raises
    ------
    DealError, DataError
    TrainingUnavailable
        If the game's models cannot be trained here.
    """
    if sweep.scenario.scenario.game == "inference":
        require_pytorch()
    for cell in sweep.cells:
        if cell.scenario.scenario.game == "inference":
            inference_deal.deal(cell, 0, "check")
        else:
            deal(cell, 0, "check")


def play(sweep: Sweep, folder: RunFolder, on_progress: Callable[[int], None]) -> Run:
    """Play every trial of a scenario that is not finished yet.

    A trial is a function of its cell, its seed and its number: it comes out alike in whatever processes it is played.

    Parameters
    ----------
    sweep : Sweep
    folder : RunFolder
        New and empty, or of a run of the same sweep that was broken off.
    on_progress : callable
        Told how many trials are finished, at the start and as each ends.

    Raises
    ------
    ResumeError
        If another process is playing in the folder.
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
                # Written before anything is played: a run that is killed can be gone on with too.
                before = [*chain.from_iterable(finished.values())]
                folder.write_result(sweep, before, complete=False, anchored=False, confinement=confinement)
                with Injector(folder) if sweep.scenario.faults else contextlib.nullcontext() as injector:
                    play_turns(
                        sweep,
                        folder,
                        missing,
                        lambda played: on_progress(len(finished) + played),
                        confinement.append,
                        injector,
                    )
        finally:
            kept = folder.settle(sweep)
            trials = [*chain.from_iterable(kept.values())]
            complete = len(kept) == len(finished) + len(missing)
            result = folder.write_result(sweep, trials, complete=complete, confinement=confinement)
    return Run(folder.path, trials, result["summary"])


def play_turns(
    sweep: Sweep,
    folder: RunFolder,
    turns: Sequence[tuple[Cell, int, int]],
    on_trial: Callable[[int], None],
    on_start: Callable[[dict[str, Any]], None] = lambda _: None,
    injector: Injector | None = None,
) -> None:
    """Start the parties and play some of a run's trials, each with its number within its cell and within the run.

    What confines each party, ``on_start`` is told before the first. Without an injector nothing goes wrong on purpose,
    whatever the scenario says.
    """
    own = confine.guard()
    run_id = folder.run
    credentials = keys.mint(run_id)
    infers = sweep.scenario.scenario.game == "inference"
    table = Table()
    referee = Referee(run_id, sweep.digest, GAME_INFERENCE if infers else GAME_REVEAL, table)
    dealer = InferenceReferee(table)

    def register(grpc_server: grpc.Server) -> None:
        watched = (referee, dealer) if injector is None else (injector.watch(referee), injector.watch(dealer))
        add_RefereeServiceServicer_to_server(watched[0], grpc_server)
        add_InferenceServiceServicer_to_server(watched[1], grpc_server)

    recording, recorder = _record(sweep, folder)
    listening = server.serve(register, credentials.pop("referee"), recorder=recorder)

    def on_death(party: Party) -> None:
        table.abort(party.epitaph())

    faults = sweep.scenario.faults
    seconds = TRIAL_SECONDS if injector is None or faults is None else faults.deadline
    detours: dict[str, str] = {}
    if injector is not None:
        injector.lead_to("referee", listening.address)
        detours = injector.detours

    def play_one(cell: Cell, trial: int, deal_id: str) -> list[dict[str, Any]]:
        started = time.perf_counter()
        if infers:
            split = inference_deal.deal(cell, trial, deal_id)
            guessed = dealer.play(split, seconds)
            return inference.record(cell, trial, split, guessed, time.perf_counter() - started)
        dealt = deal(cell, trial, deal_id)
        outcome = referee.play(dealt, seconds)
        return [reveal.record(cell, trial, dealt, outcome, time.perf_counter() - started)]

    try:
        with launch(credentials, listening.address, folder.logs, on_death, recording, detours=detours) as announced:
            layers = {"referee": confine.as_values(own)} | {name: party.layers for name, party in announced.items()}
            on_start(layers)
            try:
                require_layers(sweep, layers)
                if injector is not None:
                    injector.meet(announced)
                referee.seat({name: party.address for name, party in announced.items()} | detours)
                for played, (cell, trial, number) in enumerate(turns, start=1):
                    with injector.trial(cell.scenario, number) if injector else contextlib.nullcontext():
                        lines = play_one(cell, trial, f"deal-{number}")
                    folder.add_trial(*lines)
                    on_trial(played)
            finally:
                table.finish()
    finally:
        listening.stop()
        if recorder is not None:
            recorder.close()


def require_layers(sweep: Sweep, layers: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Refuse to play where a layer that the scenario demands is not active; else only warn of missing walls.

    Raises
    ------
    ConfinementMissing
    """
    missing: dict[str, list[str]] = {}
    for party, own in layers.items():
        for layer in own:
            if not layer["active"]:
                missing.setdefault(f"{layer['name']} ({layer['why_not']})", []).append(party)
    for text, parties in missing.items():
        name = text.partition(" ")[0]
        if name in sweep.scenario.scenario.require:
            raise ConfinementMissing(f"scenario.require: no layer {text} around {' and '.join(parties)}")
    walls = {text: parties for text, parties in missing.items() if text.partition(" ")[0] in confine.LANDLOCK}
    if walls:
        names = [*dict.fromkeys(chain.from_iterable(walls.values()))]
        who = f"the {' and the '.join(names)} {'is' if len(names) == 1 else 'are'}"
        LOG.warning("fairwall: %s not confined by %s", who, ", ".join(walls))


def _record(sweep: Sweep, folder: RunFolder) -> tuple[Recording, Recorder] | tuple[None, None]:
    """Begin the referee's transcript, under the first number that no parties of this run have recorded under."""
    mode = sweep.scenario.scenario.record
    if mode == "none":
        return None, None
    for number in itertools.count(1):
        recording = Recording(folder.path / "transcript", str(number), mode, sweep.digest)
        with contextlib.suppress(FileExistsError):
            return recording, Recorder(recording.path("referee"), folder.run, "referee", sweep.digest, mode)
    raise AssertionError("there is always a next number")
