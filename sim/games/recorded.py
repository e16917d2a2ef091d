"""What transcripts tell of any game's trial: cards, submissions and compliance's report."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.rpc.arrays import from_message
from fairwall.wire.metrics import name_of
from fairwall.wire.v1 import array_pb2
from sim.games.submissions import AuditRecord, AuditReport
from sim.transcripts.findings import BY_DIGEST
from sim.transcripts.messages import TrialMessages


class NotRecorded(ValueError):
    """Something that is needed to write a line again, and that is in no message. The text names it."""


def submission_of(trial: TrialMessages, method: str) -> Any:
    """Give what was submitted by a method.

    Raises
    ------
    NotRecorded
    """
    submitted = trial.submissions.get(method)
    if submitted is None:
        raise NotRecorded("their trials were not played to their end in what was recorded")
    if not submitted.is_stored:
        raise NotRecorded(BY_DIGEST)
    return submitted.request


def cards_of(trial: TrialMessages, deal: str) -> dict[str, NDArray[Any]]:
    """Give the arrays of a deal, by name.

    Raises
    ------
    NotRecorded
    """
    dealt = trial.cards.get(deal)
    if dealt is None:
        raise NotRecorded("their trials' deals are in no transcript")
    if dealt.arrays is None:
        raise NotRecorded(BY_DIGEST)
    return dealt.arrays


def report_of(trial: TrialMessages) -> AuditReport:
    """Give compliance's report.

    Raises
    ------
    NotRecorded
    """
    request = submission_of(trial, "SubmitAuditReport")
    audits, release_audits = (
        tuple(
            AuditRecord(
                one.request_id,
                name_of(one.metric),
                floats_of(one.exact),
                floats_of(one.released),
                one.flagged,
                one.epsilon,
            )
            for one in records
        )
        for records in (request.audits, request.release_audits)
    )
    return AuditReport(
        audits,
        request.epsilon_spent,
        tuple(request.utilities),
        request.release_spent,
        tuple(request.group_rates),
        release_audits,
    )


def bits_of(message: array_pb2.Array) -> NDArray[np.uint8]:
    """Decode zeros and ones."""
    return from_message(message).astype(np.uint8)


def floats_of(message: array_pb2.Array) -> NDArray[np.float64]:
    """Decode numbers."""
    return from_message(message).astype(np.float64)
