"""Reading any game's trial from transcripts: cards, submissions and compliance's report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairwall.rpc.arrays import from_message
from fairwall.tables.errors import DataError
from fairwall.wire.metrics import name_of
from fairwall.wire.v1 import array_pb2
from sim.games.cards import DealError
from sim.games.submissions import AuditRecord, AuditReport
from sim.scenarios.sweep import Cell
from sim.transcripts.findings import BY_DIGEST
from sim.transcripts.messages import TrialMessages

_D = TypeVar("_D")


class NotRecorded(ValueError):
    """A value needed to write a line again that is in no message. The text names it."""


def submission_of(trial: TrialMessages, method: str) -> Any:
    """Return the request submitted by a method."""
    submitted = trial.submissions.get(method)
    if submitted is None:
        raise NotRecorded("their trials were not played to their end in what was recorded")
    if not submitted.is_stored:
        raise NotRecorded(BY_DIGEST)
    return submitted.request


def cards_of(trial: TrialMessages, deal: str) -> dict[str, NDArray[Any]]:
    """Return the arrays of a deal, by name."""
    dealt = trial.cards.get(deal)
    if dealt is None:
        raise NotRecorded("their trials' deals are in no transcript")
    if dealt.arrays is None:
        raise NotRecorded(BY_DIGEST)
    return dealt.arrays


def drawn_again(
    deal: Callable[[Any, int, str, bytes], _D],
    cell: Cell[Any],
    number: int,
    trial: TrialMessages,
    secret: bytes,
    arrays_of: Callable[[_D], Mapping[str, NDArray[Any]]],
    message: str = "ComplianceDeal",
) -> _D:
    """Draw a trial's cards again, for values in no message, and check `arrays_of` them against the dealt `message`."""
    cards = cards_of(trial, message)
    try:
        dealt = deal(cell, number, trial.deal_id, secret)
    except (DealError, DataError) as error:
        raise NotRecorded(f"what was dealt cannot be drawn again: {error}") from None
    if not all(np.array_equal(cards[name], values) for name, values in arrays_of(dealt).items()):
        raise NotRecorded("what was dealt is not what is drawn again: the table is not what it was")
    return dealt


def report_of(trial: TrialMessages) -> AuditReport:
    """Return compliance's report."""
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
