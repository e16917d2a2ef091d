"""The parties' submissions: checked as a referee takes them, and found in transcripts with the cards."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.errors import DataError
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.metrics.metric import METRICS
from fairwall.rpc.arrays import ArrayError, from_message
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import is_known, name_of
from fairwall.wire.v1 import array_pb2, error_pb2
from sim.games.cards import DealError
from sim.scenarios.sweep import Cell
from sim.transcripts.findings import BY_DIGEST
from sim.transcripts.messages import TrialMessages

_Kind = TypeVar("_Kind", bound=np.generic)
_D = TypeVar("_D")


@dataclass(frozen=True, eq=False)
class AuditRecord:
    """One batch that compliance answered, with its epsilon. Arrays have shape (models,)."""

    request_id: str
    metric: str
    exact: Floats
    released: Floats
    flagged: int
    epsilon: float = math.inf


@dataclass(frozen=True)
class AuditReport:
    """Compliance's report of a trial: all batches that it answered, and the epsilon spent on them.

    In a game of releases, also the utilities of the handed-over model, the groups' rates under it, the epsilon spent on
    the people whose attributes are released, and the batches about them answered from that budget.
    """

    audits: tuple[AuditRecord, ...]
    epsilon_spent: float
    utilities: tuple[float, ...] = ()
    release_spent: float = 0.0
    group_rates: tuple[float, ...] = ()
    release_audits: tuple[AuditRecord, ...] = ()

    @property
    def answered(self) -> int:
        """Number of queries answered."""
        return sum(len(audit.exact) for audit in (*self.audits, *self.release_audits))


def take_array(message: array_pb2.Array, shape: tuple[int | None, ...], kind: type[_Kind]) -> NDArray[_Kind]:
    """Decode an array; Refusal unless it has this type and shape, where None stands for any length."""
    try:
        values = from_message(message)
    except ArrayError:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID) from None
    wanted = tuple(size if length is None else length for length, size in zip(shape, values.shape, strict=False))
    if values.dtype != kind or values.ndim != len(shape) or values.shape != wanted:
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return values.astype(kind, copy=False)


def take_guess(message: array_pb2.Array, shape: tuple[int, ...]) -> Bytes:
    """Decode guesses at bits; Refusal unless all are 0 or 1."""
    values = take_array(message, shape, np.uint8)
    if not np.isin(values, (0, 1)).all():
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return values


def take_numbers(message: array_pb2.Array, length: int | None = None, *, finite: bool = True) -> Floats:
    """Decode numbers; Refusal unless there are `length` of them."""
    values = take_array(message, (length,), np.float64)
    if finite and not np.isfinite(values).all():
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return values


def take_audit(record: game.AuditRecord) -> AuditRecord:
    """Decode compliance's report of one batch."""
    if not is_known(record.metric):
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    # A ratio may be infinite, or 0/0 (NaN).
    exact = take_numbers(record.exact, finite=METRICS[name_of(record.metric)].bounded)
    # A mechanism may answer NaN.
    if record.flagged > len(exact):
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    released = take_numbers(record.released, len(exact), finite=False)
    return AuditRecord(record.request_id, name_of(record.metric), exact, released, record.flagged, record.epsilon)


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


def bits_of(message: array_pb2.Array) -> Bytes:
    """Decode zeros and ones."""
    return from_message(message).astype(np.uint8)


def floats_of(message: array_pb2.Array) -> Floats:
    """Decode numbers."""
    return from_message(message).astype(np.float64)
