"""The closed catalogue of refusals, no part of which is made from data.

A service refuses by raising :class:`Refusal`. The caller gets a gRPC status, the reason's fixed sentence, and in the
trailing metadata the reason itself; from AuditService with numbers of the policy and of the caller's account.
"""

from __future__ import annotations

from typing import Any

import grpc

from fairwall.wire.numbers import EPSILON_MIN
from fairwall.wire.v1 import error_pb2
from fairwall.wire.v1.error_pb2 import Reason

METADATA_KEY = "fairwall-error-bin"

_INVALID = grpc.StatusCode.INVALID_ARGUMENT
_PRECONDITION = grpc.StatusCode.FAILED_PRECONDITION

CATALOGUE: dict[Reason, tuple[grpc.StatusCode, str]] = {
    error_pb2.REASON_CALLER_UNKNOWN: (
        grpc.StatusCode.UNAUTHENTICATED,
        "the caller's certificate names no party of this run, has expired, or is revoked",
    ),
    error_pb2.REASON_CALLER_NOT_ALLOWED: (
        grpc.StatusCode.PERMISSION_DENIED,
        "this party may not call this method",
    ),
    error_pb2.REASON_DEADLINE_MISSING: (_INVALID, "the call needs a deadline of at most one hour"),
    error_pb2.REASON_MESSAGE_LATE: (
        grpc.StatusCode.ABORTED,
        "the call's first message, or its next one, did not come within the time that the service waits for one",
    ),
    error_pb2.REASON_PROTOCOL_VERSION: (_PRECONDITION, "the caller speaks another version of the protocol"),
    error_pb2.REASON_REQUEST_MALFORMED: (
        _INVALID,
        "a message is missing, out of order, or longer or shorter than its header says",
    ),
    error_pb2.REASON_REQUEST_ID_INVALID: (_INVALID, "a request id is 1 to 64 printable ASCII characters"),
    error_pb2.REASON_REQUEST_ID_REUSED: (
        grpc.StatusCode.ALREADY_EXISTS,
        "this request id was used before for another request",
    ),
    error_pb2.REASON_DEAL_UNKNOWN: (grpc.StatusCode.NOT_FOUND, "no such deal is open"),
    error_pb2.REASON_METRIC_UNKNOWN: (_INVALID, "this service knows no such metric"),
    error_pb2.REASON_METRIC_NOT_ALLOWED: (_PRECONDITION, "the policy does not allow this metric"),
    error_pb2.REASON_PREDICTIONS_SHAPE: (
        _INVALID,
        "predictions have one row a model and one column a person of the test set",
    ),
    error_pb2.REASON_ROWS_DIFFER: (
        _PRECONDITION,
        "the rows that predictions are about are not those of the test set, or not as they are there",
    ),
    error_pb2.REASON_PREDICTIONS_NOT_FINITE: (_INVALID, "a prediction is not a finite number"),
    error_pb2.REASON_PREDICTIONS_OUT_OF_RANGE: (_INVALID, "a prediction lies outside [0, 1]"),
    error_pb2.REASON_PREDICTIONS_NOT_BINARY: (_INVALID, "this metric needs decisions: every prediction 0 or 1"),
    error_pb2.REASON_QUERIES_OUT_OF_RANGE: (
        _INVALID,
        "a batch has at least one model and no more than the policy allows",
    ),
    error_pb2.REASON_EPSILON_INVALID: (
        _INVALID,
        f"epsilon is a number of at least {EPSILON_MIN:,g}, and within what the policy allows a batch",
    ),
    error_pb2.REASON_BUDGET_EXHAUSTED: (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "the remaining privacy budget does not cover this batch",
    ),
    error_pb2.REASON_FEATURES_SHAPE: (_INVALID, "features have one column a feature of the model and 1 to 100000 rows"),
    error_pb2.REASON_FEATURES_NOT_FINITE: (_INVALID, "a feature is not a finite number"),
    error_pb2.REASON_OUT_OF_TURN: (_PRECONDITION, "the referee is not waiting for this from this party"),
    error_pb2.REASON_SUBMISSION_INVALID: (_INVALID, "the submission does not fit its deal"),
    error_pb2.REASON_LEDGER_UNAVAILABLE: (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "the ledger cannot be written now; the same request, sent again under the same id, is charged at most once",
    ),
    error_pb2.REASON_MECHANISM_REFUSES: (
        _PRECONDITION,
        "the mechanism does not answer this metric at this epsilon and delta",
    ),
    error_pb2.REASON_NO_FEATURES: (_PRECONDITION, "this service has no features of its own to ask models about"),
    error_pb2.REASON_MODEL_UNAVAILABLE: (
        _PRECONDITION,
        "a model that was asked for its scores did not answer, or not with numbers",
    ),
    error_pb2.REASON_MODEL_TOO_LARGE: (_INVALID, "the models are empty, or larger together than the terms allow"),
    error_pb2.REASON_MODEL_MALFORMED: (_INVALID, "a model is no ONNX model that runs"),
    error_pb2.REASON_MODEL_OPERATOR: (_INVALID, "a model has an operator that is not taken, or not so"),
    error_pb2.REASON_MODEL_SHAPE: (_INVALID, "a model takes other features than the terms name, or gives no scores"),
    error_pb2.REASON_MODEL_SLOW: (_INVALID, "a model takes more time or memory than the terms allow"),
    error_pb2.REASON_ROWS_TOO_LONG: (_INVALID, "a row to be added up has a norm of 1 at most"),
    error_pb2.REASON_REQUEST_UNKNOWN: (grpc.StatusCode.NOT_FOUND, "no such request is under way"),
    error_pb2.REASON_TOO_MANY_CALLS: (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "this caller has 8 calls under way already",
    ),
    error_pb2.REASON_QUOTA_EXHAUSTED: (
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        "this caller has used up its calls, its bytes or its new answers",
    ),
    error_pb2.REASON_TABLE_UNKNOWN: (
        grpc.StatusCode.NOT_FOUND,
        "the policy names no such table of predictions for this caller",
    ),
    error_pb2.REASON_COLUMN_UNKNOWN: (
        _PRECONDITION,
        "gaps are not by this column; or the table has no such column of numbers, or one that holds no predictions",
    ),
    error_pb2.REASON_TABLE_UNAVAILABLE: (_PRECONDITION, "the table cannot be read now"),
    error_pb2.REASON_TABLE_NEEDED: (
        _PRECONDITION,
        "the people stay where they are: ask about a table of predictions, by its name",
    ),
    error_pb2.REASON_INTERNAL: (grpc.StatusCode.INTERNAL, "the service failed"),
}


class Refusal(Exception):
    """A call's refusal, for one of the catalogue's reasons, from AuditService with the numbers that go with it."""

    def __init__(self, error: Reason | error_pb2.AuditError) -> None:
        self.error = error if isinstance(error, error_pb2.AuditError) else error_pb2.Error(reason=error)
        self.reason = self.error.reason
        super().__init__(CATALOGUE[self.reason][1])


def abort(context: grpc.ServicerContext, refusal: Refusal) -> None:
    """End the call with a refusal; always raises."""
    status, sentence = CATALOGUE[refusal.reason]
    context.set_trailing_metadata(((METADATA_KEY, refusal.error.SerializeToString()),))
    context.abort(status, sentence)


def reason_of(error: grpc.RpcError) -> Reason:
    """Return the reason of a refused call; ``REASON_UNSPECIFIED`` if it failed before a service could refuse it."""
    return audit_error_of(error).reason


def audit_error_of(error: grpc.RpcError) -> error_pb2.AuditError:
    """Return AuditService's reason for refusing a call, with its numbers; empty as `reason_of` has it."""
    trailing: Any = error.trailing_metadata() if isinstance(error, grpc.Call) else None
    for key, value in trailing or ():
        if key == METADATA_KEY:
            return error_pb2.AuditError.FromString(value)
    return error_pb2.AuditError()
