"""A trial's lines of ``trials.jsonl``, written as the referee would have, from its deal and what was submitted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.rpc.arrays import from_message
from fairwall.tables.errors import DataError
from fairwall.wire.metrics import name_of
from fairwall.wire.v1 import array_pb2
from sim.games.inference import deal as inference_deal
from sim.games.inference import record as inference
from sim.games.reveal import record as reveal
from sim.games.reveal.deal import ComplianceCards, Deal, DealError, DeveloperCards
from sim.games.reveal.referee import LossTest, Outcome, RevealGuess
from sim.games.table import AuditRecord, AuditReport
from sim.scenarios.sweep import Cell
from sim.transcripts.findings import BY_DIGEST
from sim.transcripts.messages import TrialMessages


class Unknown(ValueError):
    """Something that is needed to write a line again, and that is in no message. Its text is one line."""


def rewrite(cell: Cell, number: int, trial: TrialMessages) -> list[dict[str, Any]]:
    """Write down a trial; how long it took is 0.

    Raises
    ------
    Unknown
        If something that is needed is in no message.
    ValueError, LookupError, TypeError, ArithmeticError
        If what was submitted does not fit what was dealt.
    """
    return (_reveal if cell.scenario.scenario.game == "reveal" else _inference)(cell, number, trial)


def _reveal(cell: Cell, number: int, trial: TrialMessages) -> list[dict[str, Any]]:
    cards, request = _cards(trial, "ComplianceDeal"), _submitted(trial, "SubmitReveal")
    report = _report(_submitted(trial, "SubmitAuditReport"))
    test = _submitted(trial, "SubmitLossTest") if cell.scenario.adversary.attack else None

    def given(name: str, read: Callable[[Any], Any]) -> Any:
        return read(getattr(request, name)) if request.HasField(name) else None

    guess = RevealGuess(
        baseline=_bits(request.baseline),
        guess=_bits(request.guess),
        targeted=_bits(request.targeted).astype(np.bool_),
        polarity_known=request.polarity_known,
        reconstruction=given("reconstruction", _floats),
        queries=request.queries,
        size_queries=request.size_queries,
        max_prediction_change=request.max_prediction_change,
        accuracy_base=given("accuracy_base", float),
        accuracy_models=given("accuracy_models", _floats),
        guess_from_answers=given("guess_from_answers", _bits),
    )
    # What the developer and the adversary were dealt is no part of a line.
    deal = Deal(
        deal_id=trial.deal_id,
        scenario=cell.scenario,
        compliance=ComplianceCards(cards["labels"].astype(np.uint8), cards["protected"].astype(np.uint8), seed=b""),
        developer=DeveloperCards(None, None, scored=False, training=None),
        adversary=None,
    )
    tested = LossTest(test.accuracy_advantaged, test.accuracy_disadvantaged) if test is not None else None
    outcome = Outcome(guess, report.audits, report.epsilon_spent, tested)
    return [reveal.record(cell, number, deal, outcome, 0.0)]


def _inference(cell: Cell, number: int, trial: TrialMessages) -> list[dict[str, Any]]:
    """Draw labels and groups of the test rows, which the referee kept to itself, again, and write down a trial."""
    cards, request = _cards(trial, "TrainingDeal"), _submitted(trial, "SubmitModels")
    guesses = _submitted(trial, "SubmitGuesses")
    report = _report(_submitted(trial, "SubmitAuditReport")) if cell.scenario.developer.lambdas else None
    try:
        dealt = inference_deal.deal(cell, number, trial.deal_id)
    except (DealError, DataError) as error:
        raise Unknown(f"the test rows are in no message, and cannot be drawn again: {error}") from None
    drawn = {"bits": dealt.bits, "labels": dealt.developer.labels, "groups": dealt.developer.groups}
    if not all(np.array_equal(cards[name], values) for name, values in drawn.items()):
        raise Unknown("the test rows are in no message, and the table is not what it was")
    models = inference.Models(
        scores=_floats(request.scores),
        base_scores=_floats(request.base_scores),
        member_scores=_floats(request.member_scores),
        base_member_scores=_floats(request.base_member_scores),
        strength=request.strength,
        queries=request.queries,
    )
    outcome = inference.InferenceOutcome(models, _bits(guesses.guesses), report)
    return inference.record(cell, number, dealt, outcome, 0.0)


def _submitted(trial: TrialMessages, method: str) -> Any:
    submitted = trial.submissions.get(method)
    if submitted is None:
        raise Unknown("their trials were not played to their end in what was recorded")
    if not submitted.is_stored:
        raise Unknown(BY_DIGEST)
    return submitted.request


def _cards(trial: TrialMessages, deal: str) -> dict[str, NDArray[Any]]:
    dealt = trial.cards.get(deal)
    if dealt is None:
        raise Unknown("their trials' deals are in no transcript")
    if dealt.arrays is None:
        raise Unknown(BY_DIGEST)
    return dealt.arrays


def _report(request: game.SubmitAuditReportRequest) -> AuditReport:
    audits = (
        AuditRecord(name_of(one.metric), _floats(one.exact), _floats(one.released), one.flagged)
        for one in request.audits
    )
    return AuditReport(tuple(audits), request.epsilon_spent)


def _bits(message: array_pb2.Array) -> NDArray[np.uint8]:
    return from_message(message).astype(np.uint8)


def _floats(message: array_pb2.Array) -> NDArray[np.float64]:
    return from_message(message).astype(np.float64)
