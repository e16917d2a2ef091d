"""Outcome of a reveal trial: the parties' submissions, as the dealer took them or as a transcript records them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.games.cards import ComplianceCards
from sim.games.recorded import bits_of, cards_of, floats_of, report_of, submission_of
from sim.games.reveal.deal import DeveloperCards, RevealDeal
from sim.games.reveal.scenario import RevealScenario
from sim.games.submissions import AuditRecord
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class RevealGuess:
    """The developer's submission, arrays (n,) or (queries,); no accuracies where the test set is hidden."""

    baseline: NDArray[np.uint8]
    guess: NDArray[np.uint8]
    targeted: NDArray[np.bool_]
    polarity_known: bool
    reconstruction: NDArray[np.float64] | None
    queries: int
    size_queries: int
    max_prediction_change: float
    accuracy_base: float | None
    accuracy_models: NDArray[np.float64] | None
    guess_from_answers: NDArray[np.uint8] | None
    confidence: NDArray[np.float64] | None = None


@dataclass(frozen=True)
class SubmittedLossTest:
    """The adversary's loss test: shares in [0, 1]."""

    accuracy_advantaged: float
    accuracy_disadvantaged: float


@dataclass(frozen=True)
class RevealOutcome:
    """All submissions of one trial."""

    reveal: RevealGuess
    audits: tuple[AuditRecord, ...]
    epsilon_spent: float
    loss_test: SubmittedLossTest | None


def from_messages(
    cell: Cell[RevealScenario], _number: int, trial: TrialMessages, _secret: bytes
) -> tuple[RevealDeal, RevealOutcome]:
    """Return a trial's deal, as far as its line depends on the deal, and its outcome from the messages."""
    cards, request = cards_of(trial, "ComplianceDeal"), submission_of(trial, "SubmitReveal")
    report = report_of(trial)
    test = submission_of(trial, "SubmitLossTest") if cell.scenario.adversary.attack else None

    def given(name: str, read: Callable[[Any], Any]) -> Any:
        return read(getattr(request, name)) if request.HasField(name) else None

    guess = RevealGuess(
        baseline=bits_of(request.baseline),
        guess=bits_of(request.guess),
        targeted=bits_of(request.targeted).astype(np.bool_),
        polarity_known=request.polarity_known,
        reconstruction=given("reconstruction", floats_of),
        queries=request.queries,
        size_queries=request.size_queries,
        max_prediction_change=request.max_prediction_change,
        accuracy_base=given("accuracy_base", float),
        accuracy_models=given("accuracy_models", floats_of),
        guess_from_answers=given("guess_from_answers", bits_of),
        confidence=given("confidence", floats_of),
    )
    # A line does not depend on the developer's and the adversary's cards.
    deal = RevealDeal(
        deal_id=trial.deal_id,
        scenario=cell.scenario,
        compliance=ComplianceCards(cards["labels"].astype(np.uint8), cards["protected"].astype(np.uint8), seed=b""),
        developer=DeveloperCards(None, None, scored=False, training=None),
        adversary=None,
    )
    tested = SubmittedLossTest(test.accuracy_advantaged, test.accuracy_disadvantaged) if test is not None else None
    return deal, RevealOutcome(guess, report.audits, report.epsilon_spent, tested)
