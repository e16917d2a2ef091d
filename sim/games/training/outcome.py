"""Outcome of a training trial: the parties' submissions, as the dealer took them or as a transcript records them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from developer.training.model import TrainingStep
from developer.training.play import ModelSubmission
from fairwall.game.v1 import training_service_pb2 as training
from fairwall.rpc.arrays import from_message
from sim.games.recorded import NotRecorded, drawn_again, report_of
from sim.games.recorded import submission_of as submitted
from sim.games.submissions import AuditReport
from sim.games.training.deal import TrainingDeal, deal
from sim.games.training.scenario import TrainingScenario
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class TrainingOutcome:
    """The developer's submission, the adversary's guesses about canaries, if any, and compliance's report."""

    model: ModelSubmission
    guesses: NDArray[np.uint8] | None
    report: AuditReport | None


def from_messages(
    cell: Cell[TrainingScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[TrainingDeal, TrainingOutcome]:
    """Return a trial's deal, drawn again since test rows are in no message, and its outcome from the messages."""
    scenario = cell.scenario
    request = submitted(trial, "SubmitModel")
    guesses = submitted(trial, "SubmitCanaries") if scenario.training.canaries else None
    report = report_of(trial) if scenario.told else None
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: dealt.dealt, "ModelDeal")
    if trial.cards["ModelDeal"].deal.terms != dealt.terms:
        raise NotRecorded("the developer was dealt other terms than the scenario's")
    told = None if guesses is None else from_message(guesses.guesses).astype(np.uint8, copy=False)
    return dealt, TrainingOutcome(submission_of(request), told, report)


def submission_of(request: training.SubmitModelRequest) -> ModelSubmission:
    """Decode the developer's submission."""
    return ModelSubmission(
        scores=from_message(request.scores).astype(np.float32, copy=False),
        decisions=from_message(request.decisions).astype(np.uint8, copy=False),
        epsilon=request.epsilon,
        delta=request.delta,
        group_epsilons=tuple(request.group_epsilons),
        steps=tuple(TrainingStep(step.what, step.epsilon, step.delta, step.of) for step in request.steps),
        asked=request.asked,
        rates=tuple(request.rates),
    )
