from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[Reason]
    REASON_CALLER_UNKNOWN: _ClassVar[Reason]
    REASON_CALLER_NOT_ALLOWED: _ClassVar[Reason]
    REASON_DEADLINE_MISSING: _ClassVar[Reason]
    REASON_PROTOCOL_VERSION: _ClassVar[Reason]
    REASON_REQUEST_MALFORMED: _ClassVar[Reason]
    REASON_REQUEST_ID_INVALID: _ClassVar[Reason]
    REASON_REQUEST_ID_REUSED: _ClassVar[Reason]
    REASON_DEAL_UNKNOWN: _ClassVar[Reason]
    REASON_METRIC_UNKNOWN: _ClassVar[Reason]
    REASON_METRIC_NOT_ALLOWED: _ClassVar[Reason]
    REASON_PREDICTIONS_SHAPE: _ClassVar[Reason]
    REASON_PREDICTIONS_NOT_FINITE: _ClassVar[Reason]
    REASON_PREDICTIONS_OUT_OF_RANGE: _ClassVar[Reason]
    REASON_QUERIES_OUT_OF_RANGE: _ClassVar[Reason]
    REASON_EPSILON_INVALID: _ClassVar[Reason]
    REASON_BUDGET_EXHAUSTED: _ClassVar[Reason]
    REASON_FEATURES_SHAPE: _ClassVar[Reason]
    REASON_FEATURES_NOT_FINITE: _ClassVar[Reason]
    REASON_OUT_OF_TURN: _ClassVar[Reason]
    REASON_SUBMISSION_INVALID: _ClassVar[Reason]
    REASON_INTERNAL: _ClassVar[Reason]
    REASON_TOO_MANY_CALLS: _ClassVar[Reason]
    REASON_PREDICTIONS_NOT_BINARY: _ClassVar[Reason]
    REASON_LEDGER_UNAVAILABLE: _ClassVar[Reason]
    REASON_MECHANISM_REFUSES: _ClassVar[Reason]
    REASON_NO_FEATURES: _ClassVar[Reason]
    REASON_MODEL_UNAVAILABLE: _ClassVar[Reason]
    REASON_REQUEST_UNKNOWN: _ClassVar[Reason]
    REASON_ROWS_TOO_LONG: _ClassVar[Reason]
    REASON_QUOTA_EXHAUSTED: _ClassVar[Reason]
    REASON_MESSAGE_LATE: _ClassVar[Reason]
    REASON_ROWS_DIFFER: _ClassVar[Reason]
    REASON_TABLE_UNKNOWN: _ClassVar[Reason]
    REASON_COLUMN_UNKNOWN: _ClassVar[Reason]
    REASON_TABLE_UNAVAILABLE: _ClassVar[Reason]
    REASON_TABLE_NEEDED: _ClassVar[Reason]
    REASON_MODEL_TOO_LARGE: _ClassVar[Reason]
    REASON_MODEL_MALFORMED: _ClassVar[Reason]
    REASON_MODEL_OPERATOR: _ClassVar[Reason]
    REASON_MODEL_SHAPE: _ClassVar[Reason]
    REASON_MODEL_SLOW: _ClassVar[Reason]
REASON_UNSPECIFIED: Reason
REASON_CALLER_UNKNOWN: Reason
REASON_CALLER_NOT_ALLOWED: Reason
REASON_DEADLINE_MISSING: Reason
REASON_PROTOCOL_VERSION: Reason
REASON_REQUEST_MALFORMED: Reason
REASON_REQUEST_ID_INVALID: Reason
REASON_REQUEST_ID_REUSED: Reason
REASON_DEAL_UNKNOWN: Reason
REASON_METRIC_UNKNOWN: Reason
REASON_METRIC_NOT_ALLOWED: Reason
REASON_PREDICTIONS_SHAPE: Reason
REASON_PREDICTIONS_NOT_FINITE: Reason
REASON_PREDICTIONS_OUT_OF_RANGE: Reason
REASON_QUERIES_OUT_OF_RANGE: Reason
REASON_EPSILON_INVALID: Reason
REASON_BUDGET_EXHAUSTED: Reason
REASON_FEATURES_SHAPE: Reason
REASON_FEATURES_NOT_FINITE: Reason
REASON_OUT_OF_TURN: Reason
REASON_SUBMISSION_INVALID: Reason
REASON_INTERNAL: Reason
REASON_TOO_MANY_CALLS: Reason
REASON_PREDICTIONS_NOT_BINARY: Reason
REASON_LEDGER_UNAVAILABLE: Reason
REASON_MECHANISM_REFUSES: Reason
REASON_NO_FEATURES: Reason
REASON_MODEL_UNAVAILABLE: Reason
REASON_REQUEST_UNKNOWN: Reason
REASON_ROWS_TOO_LONG: Reason
REASON_QUOTA_EXHAUSTED: Reason
REASON_MESSAGE_LATE: Reason
REASON_ROWS_DIFFER: Reason
REASON_TABLE_UNKNOWN: Reason
REASON_COLUMN_UNKNOWN: Reason
REASON_TABLE_UNAVAILABLE: Reason
REASON_TABLE_NEEDED: Reason
REASON_MODEL_TOO_LARGE: Reason
REASON_MODEL_MALFORMED: Reason
REASON_MODEL_OPERATOR: Reason
REASON_MODEL_SHAPE: Reason
REASON_MODEL_SLOW: Reason

class Error(_message.Message):
    __slots__ = ("reason",)
    REASON_FIELD_NUMBER: _ClassVar[int]
    reason: Reason
    def __init__(self, reason: _Optional[_Union[Reason, str]] = ...) -> None: ...

class AuditError(_message.Message):
    __slots__ = ("reason", "people", "queries_max", "epsilon_max", "epsilon_remaining", "epsilon_needed", "epsilon_min")
    REASON_FIELD_NUMBER: _ClassVar[int]
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    QUERIES_MAX_FIELD_NUMBER: _ClassVar[int]
    EPSILON_MAX_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_FIELD_NUMBER: _ClassVar[int]
    EPSILON_NEEDED_FIELD_NUMBER: _ClassVar[int]
    EPSILON_MIN_FIELD_NUMBER: _ClassVar[int]
    reason: Reason
    people: int
    queries_max: int
    epsilon_max: float
    epsilon_remaining: float
    epsilon_needed: float
    epsilon_min: float
    def __init__(self, reason: _Optional[_Union[Reason, str]] = ..., people: _Optional[int] = ..., queries_max: _Optional[int] = ..., epsilon_max: _Optional[float] = ..., epsilon_remaining: _Optional[float] = ..., epsilon_needed: _Optional[float] = ..., epsilon_min: _Optional[float] = ...) -> None: ...
