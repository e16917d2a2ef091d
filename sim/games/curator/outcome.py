"""What came of a trial of the game of the curator, as the dealer took it or as a transcript tells it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairwall.game.v1 import curator_service_pb2 as wire
from fairwall.laws.commitment import Commitment, rows_of
from fairwall.rpc.arrays import from_message
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games.curator.deal import CuratorDeal, deal
from sim.games.curator.regulator import Answered, Opening
from sim.games.curator.scenario import CuratorScenario
from sim.games.recorded import drawn_again, report_of, submission_of
from sim.games.submissions import AuditReport, take_array, take_guess, take_numbers
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class CuratorOutcome:
    """What both parties handed in; no commitment where none was asked for."""

    answered: Answered
    commitment: Commitment | None
    opening: Opening
    report: AuditReport


def from_messages(
    cell: Cell[CuratorScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[CuratorDeal, CuratorOutcome]:
    """Find in a trial's messages what came of it; the deal is drawn again. NotRecorded where something is missing."""
    dealt = drawn_again(
        deal,
        *(cell, number, trial, secret),
        lambda dealt: {"labels": dealt.compliance.labels, "protected": dealt.compliance.protected},
    )
    return dealt, CuratorOutcome(
        answered_of(submission_of(trial, "SubmitAnswers")),
        commitment_of(submission_of(trial, "ReleaseCommitment").commitment) if dealt.scenario.committed else None,
        opening_of(submission_of(trial, "SubmitOpening")),
        report_of(trial),
    )


def take_answered(request: wire.SubmitAnswersRequest, dealt: CuratorDeal) -> Answered:
    """Take what was asked and answered; Refusal if it does not fit together, or the deal."""
    asked = dealt.scenario.curator.requests
    take_array(request.predictions, (asked, dealt.scenario.data.people), np.bool_)
    take_numbers(request.answers, asked)
    if len(set(request.request_ids)) != asked or len(request.request_ids) != asked:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return answered_of(request)


def take_opening(request: wire.SubmitOpeningRequest, dealt: CuratorDeal) -> Opening:
    """Take what compliance opens; Refusal if it does not fit the deal. What it opens, the regulator says."""
    asked, people = dealt.scenario.curator, dealt.scenario.data.people
    take_guess(request.attributes, (people,))
    rows = take_numbers(request.sample, asked.sample)
    if len(np.unique(rows)) != len(rows) or not np.isin(rows, np.arange(people)).all():
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return opening_of(request)


def require_commitment(commitment: Commitment, dealt: CuratorDeal) -> None:
    """Raise CommitmentError unless it is one to the rows that were dealt."""
    commitment.require(rows_of(dealt.compliance.labels))


def answered_of(request: wire.SubmitAnswersRequest) -> Answered:
    """Read what was asked and answered."""
    return Answered(
        tuple(request.request_ids),
        from_message(request.predictions).astype(np.uint8),
        from_message(request.answers).astype(np.float64),
    )


def opening_of(request: wire.SubmitOpeningRequest) -> Opening:
    """Read what was opened."""
    return Opening(
        from_message(request.attributes).astype(np.uint8),
        request.seed,
        request.salt_key,
        from_message(request.sample).astype(np.intp),
    )


def commitment_of(message: wire.Commitment) -> Commitment:
    """Read a commitment."""
    return Commitment(int(message.rows), message.rows_digest, message.root, message.seed_digest)
