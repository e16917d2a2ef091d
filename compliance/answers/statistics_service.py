"""StatisticsService: validate, add up, record, reply."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping

import grpc
import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from compliance.answers.audit_service import check_request_id, developer_of, explained
from compliance.answers.statistics import Cohort
from fairwall.compliance.v1 import statistics_service_pb2 as wire
from fairwall.compliance.v1.statistics_service_pb2_grpc import StatisticsServiceServicer
from fairwall.rpc import arrays, uploads
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import array_pb2, error_pb2

LOG = logging.getLogger(__name__)

WIDTH_MAX = 4096
MULTIPLIER_MIN, MULTIPLIER_MAX = 1e-3, 1e9
"""Range of multipliers: less noise costs more than any budget; more leaves nothing of the largest sum."""

_LONGEST = 1 + 1e-9
"""Largest norm accepted, for rows of norm 1 with rounded numbers. Norms above 1 are scaled down to 1."""


class StatisticsService(StatisticsServiceServicer):
    """The gRPC service that sums rows by group for the open deals.

    `cohorts`: by deal id; the caller adds and removes them.
    """

    def __init__(self, cohorts: Mapping[str, Cohort]) -> None:
        self._cohorts = cohorts

    def SumByGroup(
        self, request_iterator: Iterator[wire.SumByGroupRequest], context: grpc.ServicerContext
    ) -> wire.SumByGroupResponse:
        """Return noisy sums by group."""
        header = uploads.header_of(request_iterator)
        cohort = self._cohorts.get(header.deal_id)
        if cohort is None:
            raise Refusal(error_pb2.REASON_DEAL_UNKNOWN)
        check_request_id(header.request_id)
        if not MULTIPLIER_MIN <= header.multiplier <= MULTIPLIER_MAX:
            raise Refusal(error_pb2.REASON_EPSILON_INVALID)
        rows = _receive(header.rows, request_iterator, len(cohort.protected))
        digest = blake3(header.SerializeToString(deterministic=True) + rows.tobytes()).digest()
        with explained(header.deal_id):
            entry = cohort.answer(developer_of(context), header.request_id, digest, rows, header.multiplier)
        LOG.info("deal %s: told sums of %d columns", header.deal_id, rows.shape[1])
        return wire.SumByGroupResponse(
            sums=arrays.to_message(cohort.sums(entry)),
            epsilon_charged=entry.request.loss.epsilon,
            epsilon_remaining=entry.remaining,
        )


def _receive(
    header: array_pb2.ArrayHeader, requests: Iterator[wire.SumByGroupRequest], people: int
) -> NDArray[np.float64]:
    shape = tuple(header.shape)
    if len(shape) != 2 or shape[0] != people or not 1 <= shape[1] <= WIDTH_MAX:
        raise Refusal(error_pb2.REASON_FEATURES_SHAPE)
    rows = uploads.array_after(header, requests, "rows_chunk", 8 * people * WIDTH_MAX)
    if rows.dtype != np.float64:
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    if not np.isfinite(rows).all():
        raise Refusal(error_pb2.REASON_FEATURES_NOT_FINITE)
    return bounded(rows.astype(np.float64, copy=False))


def bounded(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the rows, scaled to norm 1 if rounding made them longer; Refusal ``ROWS_TOO_LONG`` for longer rows."""
    with np.errstate(over="ignore"):  # an infinite norm is too long
        lengths = np.sqrt(np.square(rows).sum(axis=1))
    if not (lengths <= _LONGEST).all():
        raise Refusal(error_pb2.REASON_ROWS_TOO_LONG)
    scaled = rows / np.maximum(lengths, 1.0)[:, None]
    return np.asarray(scaled)
