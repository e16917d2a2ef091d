"""GroupService: validate, count, record, reply."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping

import grpc
import numpy as np

from compliance.answers.audit_service import (
    check_request_id,
    checked_predictions,
    developer_of,
    explained,
    is_compared,
    opened,
    received,
    wait,
)
from compliance.answers.groups import EPSILON_MIN, GroupCase
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.compliance.v1.group_service_pb2_grpc import GroupServiceServicer
from fairwall.laws.metrics.metric import MetricPart, find_metric
from fairwall.rpc import arrays, journal
from fairwall.rpc.errors import Refusal
from fairwall.wire.audits import by_group_digest
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.error_pb2 import AuditError

LOG = logging.getLogger(__name__)

_DECISIONS = frozenset(
    {
        wire.MEASURE_SELECTION_RATE,
        wire.MEASURE_TRUE_POSITIVE_RATE,
        wire.MEASURE_FALSE_POSITIVE_RATE,
        wire.MEASURE_ACCURACY,
    }
)

_ALLOWED_BY = {
    wire.MEASURE_SELECTION_RATE: MetricPart("prediction"),
    wire.MEASURE_MEAN_SCORE: MetricPart("prediction"),
    wire.MEASURE_SCORING_RATE: MetricPart("prediction"),
    wire.MEASURE_TRUE_POSITIVE_RATE: MetricPart("prediction", label=1),
    wire.MEASURE_FALSE_POSITIVE_RATE: MetricPart("prediction", label=0),
    wire.MEASURE_ACCURACY: MetricPart("correct"),
}
"""The metric part that permits each measure: a measure is allowed if an allowed metric compares groups by it, and so
reveals as much about labels."""


class GroupService(GroupServiceServicer):
    """The gRPC service that counts by group for the open cases.

    `cases`: by data set name; the caller adds and removes cases.
    """

    def __init__(self, cases: Mapping[str, GroupCase]) -> None:
        self._cases = cases

    def GetGroupTerms(
        self, request: wire.GetGroupTermsRequest, context: grpc.ServicerContext
    ) -> wire.GetGroupTermsResponse:
        """Return the terms of counts by group."""
        grouped = self._case(request.deal_id, context)
        case = grouped.case
        with explained(request.deal_id):
            standing = case.ledger.standing(case.dataset, developer_of(context))
        terms = _terms(grouped)
        terms.epsilon = standing.budget.epsilon if standing.budget else 0.0
        terms.epsilon_remaining = standing.remaining
        return terms

    def ByGroup(
        self, request_iterator: Iterator[wire.ByGroupRequest], context: grpc.ServicerContext
    ) -> wire.ByGroupResponse:
        """Count people by group, with noise."""
        header = arrays.first_header(request_iterator)
        grouped = self._case(header.deal_id, context)
        _validate(header, grouped)
        binary = bool(set(header.measures) & _DECISIONS)
        predictions = checked_predictions(received(header, request_iterator, grouped.case), binary=binary)
        predictions = predictions.astype(np.float64, copy=False)
        digest = by_group_digest(header, _terms(grouped), predictions)
        developer, began, case = developer_of(context), time.monotonic(), grouped.case
        compared = is_compared(header.rows_digest, case)
        if grouped.rows is not None:
            predictions = grouped.rows.of_records(predictions, by_ids=compared is True)
        with explained(header.deal_id):
            entry = grouped.answer(developer, header.request_id, digest, header, predictions)
            now = case.ledger.remaining(case.dataset, developer)
        LOG.debug("deal %s: counted by group for %d models", header.deal_id, len(predictions))
        wait(case, began)
        response = wire.ByGroupResponse(
            release=wire.GroupRelease.FromString(entry.reply.answer),
            epsilon_charged=entry.request.loss.epsilon,
            epsilon_remaining=entry.remaining,
            epsilon_remaining_now=None if now == entry.remaining else now,
        )
        if compared is not None:
            response.rows_compared = compared
        return response

    def _case(self, deal_id: str, context: grpc.ServicerContext) -> GroupCase:
        return opened(self._cases, deal_id, context)


def _terms(grouped: GroupCase) -> wire.GetGroupTermsResponse:
    """Return the terms, except the caller's remaining budget."""
    return wire.GetGroupTermsResponse(
        people=grouped.case.people,
        attributes=grouped.attributes([each.name for each in grouped.people.attributes]),
        measures=_measures(grouped),
        least_share=grouped.least_share,
    )


def _measures(grouped: GroupCase) -> list[wire.Measure]:
    metrics = [find_metric(name) for name in grouped.case.records.metrics]
    # Predictive parity compares hits among decisions of 1.
    compared = {part for metric in metrics if not metric.binary for part in metric.parts}
    return [measure for measure, part in _ALLOWED_BY.items() if part in compared]


def _validate(header: wire.ByGroupHeader, grouped: GroupCase) -> None:
    """Refuse an invalid request, before any prediction is read."""
    check_request_id(header.request_id)
    journal.note(request=header.request_id)
    case = grouped.case
    if not header.measures or len(set(header.measures)) < len(header.measures):
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    if not set(header.measures) <= _ALLOWED_BY.keys():
        raise Refusal(error_pb2.REASON_METRIC_UNKNOWN)
    if not set(header.measures) <= set(_measures(grouped)):
        raise Refusal(error_pb2.REASON_METRIC_NOT_ALLOWED)
    known = {each.name for each in grouped.people.attributes}
    if not header.by or len(set(header.by)) < len(header.by) or not set(header.by) <= known:
        raise Refusal(error_pb2.REASON_REQUEST_MALFORMED)
    if wire.MEASURE_MEAN_SCORE in header.measures and any(map(grouped.people.golden, header.by)):
        raise Refusal(error_pb2.REASON_METRIC_NOT_ALLOWED)  # scores cannot be summed by probabilities
    least = max(case.epsilon_min, EPSILON_MIN)
    if not least <= header.epsilon <= case.epsilon_max:
        raise Refusal(
            AuditError(reason=error_pb2.REASON_EPSILON_INVALID, epsilon_min=least, epsilon_max=case.epsilon_max)
        )
