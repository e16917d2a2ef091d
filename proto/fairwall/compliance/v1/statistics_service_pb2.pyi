from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class SumByGroupRequest(_message.Message):
    __slots__ = ("header", "rows_chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ROWS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: SumsHeader
    rows_chunk: bytes
    def __init__(self, header: _Optional[_Union[SumsHeader, _Mapping]] = ..., rows_chunk: _Optional[bytes] = ...) -> None: ...

class SumsHeader(_message.Message):
    __slots__ = ("request_id", "deal_id", "multiplier", "rows")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    MULTIPLIER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    deal_id: str
    multiplier: float
    rows: _array_pb2.ArrayHeader
    def __init__(self, request_id: _Optional[str] = ..., deal_id: _Optional[str] = ..., multiplier: _Optional[float] = ..., rows: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class SumByGroupResponse(_message.Message):
    __slots__ = ("sums", "epsilon_charged", "epsilon_remaining")
    SUMS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_CHARGED_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_FIELD_NUMBER: _ClassVar[int]
    sums: _array_pb2.Array
    epsilon_charged: float
    epsilon_remaining: float
    def __init__(self, sums: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., epsilon_charged: _Optional[float] = ..., epsilon_remaining: _Optional[float] = ...) -> None: ...
