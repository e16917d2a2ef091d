"""Checks of the parties' submissions to a referee: a malformed one is refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.laws.metric import METRICS
from fairwall.rpc.arrays import ArrayError, from_message
from fairwall.rpc.errors import Refusal
from fairwall.wire.metrics import is_known, name_of
from fairwall.wire.v1 import array_pb2, error_pb2

_Kind = TypeVar("_Kind", bound=np.generic)


@dataclass(frozen=True, eq=False)
class AuditRecord:
    """One batch that compliance answered, with its epsilon. Arrays have shape (models,)."""

    request_id: str
    metric: str
    exact: NDArray[np.float64]
    released: NDArray[np.float64]
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


def take_guess(message: array_pb2.Array, shape: tuple[int, ...]) -> NDArray[np.uint8]:
    """Decode guesses at bits; Refusal unless all are 0 or 1."""
    values = take_array(message, shape, np.uint8)
    if not np.isin(values, (0, 1)).all():
        raise Refusal(error_pb2.REASON_SUBMISSION_INVALID)
    return values


def take_numbers(message: array_pb2.Array, length: int | None = None, *, finite: bool = True) -> NDArray[np.float64]:
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
