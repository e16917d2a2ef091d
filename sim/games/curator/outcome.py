"""Outcome of a curator trial, as the dealer took it or as a transcript records it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairwall.game.v1 import curator_service_pb2 as wire
from fairwall.laws.commitment import Commitment
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
    """Both parties' submissions; `commitment` is None where the scenario requires none."""

    answered: Answered
    commitment: Commitment | None
    opening: Opening
    report: AuditReport


def from_messages(
    cell: Cell[CuratorScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[CuratorDeal, CuratorOutcome]:
    """Return a trial's deal, drawn again, and its outcome from the messages; NotRecorded where a value is missing."""
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: dealt.compliance.tested)
    return dealt, CuratorOutcome(
        answered(submission_of(trial, "SubmitAnswers"), dealt),
        commitment_of(submission_of(trial, "ReleaseCommitment").commitment) if dealt.scenario.committed else None,
        opening(submission_of(trial, "SubmitOpening"), dealt),
        report_of(trial),
    )


def answered(request: wire.SubmitAnswersRequest, dealt: CuratorDeal) -> Answered:
    """Decode the developer's requests and answers; Refusal if they do not fit together, or the deal."""
    asked, ids = dealt.scenario.curator.requests, tuple(request.request_ids)
    predictions = take_array(request.predictions, (asked, dealt.scenario.data.people), np.bool_)
    if not len(set(ids)) == len(ids) == asked:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return Answered(ids, predictions.astype(np.uint8), take_numbers(request.answers, asked))


def opening(request: wire.SubmitOpeningRequest, dealt: CuratorDeal) -> Opening:
    """Decode compliance's opening; Refusal if it does not fit the deal. Its truth is for the regulator to judge."""
    people, rows = dealt.scenario.data.people, take_numbers(request.sample, dealt.scenario.curator.sample)
    if len(np.unique(rows)) != len(rows) or not np.isin(rows, np.arange(people)).all():
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    attributes = take_guess(request.attributes, (people,))
    return Opening(attributes, request.seed, request.salt_key, rows.astype(np.intp))


def commitment_of(message: wire.Commitment) -> Commitment:
    """Decode a commitment."""
    return Commitment(int(message.rows), message.rows_digest, message.root, message.seed_digest)
