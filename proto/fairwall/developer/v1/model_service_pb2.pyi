from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PredictRequest(_message.Message):
    __slots__ = ("header", "features_chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: PredictHeader
    features_chunk: bytes
    def __init__(self, header: _Optional[_Union[PredictHeader, _Mapping]] = ..., features_chunk: _Optional[bytes] = ...) -> None: ...

class PredictHeader(_message.Message):
    __slots__ = ("deal_id", "features", "request_id", "model")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    features: _array_pb2.ArrayHeader
    request_id: str
    model: int
    def __init__(self, deal_id: _Optional[str] = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., request_id: _Optional[str] = ..., model: _Optional[int] = ...) -> None: ...

class PredictResponse(_message.Message):
    __slots__ = ("scores",)
    SCORES_FIELD_NUMBER: _ClassVar[int]
    scores: _array_pb2.Array
    def __init__(self, scores: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...
