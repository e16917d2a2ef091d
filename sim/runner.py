"""A run: scenario, deal, parties, outcome, score, record; in that direction only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from fairwall.game.v1.inference_service_pb2_grpc import add_InferenceServiceServicer_to_server
from fairwall.game.v1.referee_service_pb2 import GAME_INFERENCE, GAME_REVEAL
from fairwall.game.v1.referee_service_pb2_grpc import add_RefereeServiceServicer_to_server
from fairwall.rpc import server
from sim import pki
from sim.deal import deal
from sim.games import inference, reveal
from sim.inference_referee import InferenceReferee
from sim.launch import Party, launch
from sim.referee import Referee
from sim.results import RunFolder
from sim.scenario import Cell, Plan

TRIAL_SECONDS = 1800.0
"""A trial that takes longer has hung."""


@dataclass(frozen=True)
class Run:
    """A run that was played to its end."""

    folder: Path
    trials: list[dict[str, Any]]
    summary: list[dict[str, Any]]


def check(plan: Plan) -> None:
    """Draw each cell's first deal, before any process starts, so that bad data are found before anything is played.

    Raises
    ------
    DealError, DataError
    """
    for cell in plan.cells:
        if cell.scenario.scenario.game == "inference":
            inference.deal(cell, 0, "check")
        else:
            deal(cell, 0, "check")


def play(plan: Plan, folder: RunFolder, on_trial: Callable[[dict[str, Any]], None]) -> Run:
    """Play every trial of a scenario.

    Parameters
    ----------
    plan : Plan
    folder : RunFolder
        New and empty.
    on_trial : callable
        Told of each trial as it ends.

    Raises
    ------
    TrialFailed
        If a trial does not finish: a party died, or took too long. What was finished is kept.
    PartyDied
        If a party does not start.
    OSError
        If the folder cannot be written.
    """
    folder.write_scenario(plan)
    run_id = folder.path.name
    trials: list[dict[str, Any]] = []
    credentials = pki.mint(run_id)
    infers = plan.scenario.scenario.game == "inference"
    referee = Referee(run_id, plan.digest, GAME_INFERENCE if infers else GAME_REVEAL)
    dealer = InferenceReferee()

    def register(grpc_server: grpc.Server) -> None:
        add_RefereeServiceServicer_to_server(referee, grpc_server)
        add_InferenceServiceServicer_to_server(dealer, grpc_server)

    listening = server.serve(register, credentials.pop("referee"))

    def on_death(party: Party) -> None:
        referee.abort(party.epitaph())
        dealer.abort(party.epitaph())

    def play_one(cell: Cell, trial: int, deal_id: str) -> list[dict[str, Any]]:
        started = time.perf_counter()
        if infers:
            split = inference.deal(cell, trial, deal_id)
            models = dealer.play(split, TRIAL_SECONDS)
            return inference.record(cell, trial, split, models, time.perf_counter() - started)
        dealt = deal(cell, trial, deal_id)
        outcome = referee.play(dealt, TRIAL_SECONDS)
        return [reveal.record(cell, trial, dealt, outcome, time.perf_counter() - started)]

    complete = False
    try:
        with launch(credentials, listening.address, folder.logs, on_death) as addresses:
            referee.seat(addresses)
            try:
                for cell, trial, number in _schedule(plan):
                    lines = play_one(cell, trial, f"deal-{number}")
                    for line in lines:
                        folder.add_trial(line)
                    trials += lines
                    on_trial(lines[0])
                complete = True
            finally:
                referee.finish()
                dealer.finish()
    finally:
        listening.stop()
        result = folder.write_result(plan, trials, complete=complete)
    return Run(folder.path, trials, result["summary"])


def _schedule(plan: Plan) -> Iterator[tuple[Cell, int, int]]:
    """List the trials, each with its number within its cell and within the run."""
    number = 0
    for cell in plan.cells:
        for trial in range(cell.scenario.scenario.trials):
            number += 1
            yield cell, trial, number
