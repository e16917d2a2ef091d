"""Outcome of an inference trial: the parties' submissions, as the dealer took them or as a transcript records them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.games.inference.deal import InferenceDeal, deal
from sim.games.inference.scenario import InferenceScenario
from sim.games.recorded import bits_of, drawn_again, floats_of, report_of, submission_of
from sim.games.submissions import AuditReport
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class SubmittedModels:
    """The developer's scores (models, rows) with and without the defence, its lambda, and its number of queries."""

    scores: NDArray[np.float64]
    base_scores: NDArray[np.float64]
    member_scores: NDArray[np.float64]
    base_member_scores: NDArray[np.float64]
    strength: float
    queries: int


@dataclass(frozen=True, eq=False)
class InferenceOutcome:
    """The models, the guesses (attacks, models), and compliance's report if it is in the game."""

    models: SubmittedModels
    guesses: NDArray[np.uint8]
    report: AuditReport | None


def from_messages(
    cell: Cell[InferenceScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[InferenceDeal, InferenceOutcome]:
    """Return a trial's deal, drawn again since test rows are in no message, and its outcome from the messages."""
    request, guesses = submission_of(trial, "SubmitModels"), submission_of(trial, "SubmitGuesses")
    report = report_of(trial) if cell.scenario.developer.lambdas else None
    dealt = drawn_again(
        deal,
        *(cell, number, trial, secret),
        lambda dealt: {"bits": dealt.bits, "labels": dealt.developer.labels, "groups": dealt.developer.groups},
        "TrainingDeal",
    )
    models = SubmittedModels(
        scores=floats_of(request.scores),
        base_scores=floats_of(request.base_scores),
        member_scores=floats_of(request.member_scores),
        base_member_scores=floats_of(request.base_member_scores),
        strength=request.strength,
        queries=request.queries,
    )
    return dealt, InferenceOutcome(models, bits_of(guesses.guesses), report)
