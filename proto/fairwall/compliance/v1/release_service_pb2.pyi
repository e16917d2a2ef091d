from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class GetReleaseTermsRequest(_message.Message):
    __slots__ = ("deal_id",)
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    def __init__(self, deal_id: _Optional[str] = ...) -> None: ...

class GetReleaseTermsResponse(_message.Message):
    __slots__ = ("people", "protocol", "columns", "epsilon", "epsilon_remaining")
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    PROTOCOL_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_FIELD_NUMBER: _ClassVar[int]
    people: int
    protocol: str
    columns: _containers.RepeatedCompositeFieldContainer[ReleasedColumn]
    epsilon: float
    epsilon_remaining: float
    def __init__(self, people: _Optional[int] = ..., protocol: _Optional[str] = ..., columns: _Optional[_Iterable[_Union[ReleasedColumn, _Mapping]]] = ..., epsilon: _Optional[float] = ..., epsilon_remaining: _Optional[float] = ...) -> None: ...

class ReleasedColumn(_message.Message):
    __slots__ = ("name", "domain", "share", "values")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    domain: int
    share: float
    values: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, name: _Optional[str] = ..., domain: _Optional[int] = ..., share: _Optional[float] = ..., values: _Optional[_Iterable[str]] = ...) -> None: ...

class SanitiseRequest(_message.Message):
    __slots__ = ("request_id", "deal_id", "epsilon")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    deal_id: str
    epsilon: float
    def __init__(self, request_id: _Optional[str] = ..., deal_id: _Optional[str] = ..., epsilon: _Optional[float] = ...) -> None: ...

class SanitiseResponse(_message.Message):
    __slots__ = ("header", "encoded_chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    ENCODED_CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: SanitisedHeader
    encoded_chunk: bytes
    def __init__(self, header: _Optional[_Union[SanitisedHeader, _Mapping]] = ..., encoded_chunk: _Optional[bytes] = ...) -> None: ...

class SanitisedHeader(_message.Message):
    __slots__ = ("epsilons", "encoded", "epsilon_charged", "epsilon_remaining")
    EPSILONS_FIELD_NUMBER: _ClassVar[int]
    ENCODED_FIELD_NUMBER: _ClassVar[int]
    EPSILON_CHARGED_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_FIELD_NUMBER: _ClassVar[int]
    epsilons: _containers.RepeatedScalarFieldContainer[float]
    encoded: _array_pb2.ArrayHeader
    epsilon_charged: float
    epsilon_remaining: float
    def __init__(self, epsilons: _Optional[_Iterable[float]] = ..., encoded: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., epsilon_charged: _Optional[float] = ..., epsilon_remaining: _Optional[float] = ...) -> None: ...

class HandModelRequest(_message.Message):
    __slots__ = ("header", "nodes_chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NODES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: ModelHeader
    nodes_chunk: bytes
    def __init__(self, header: _Optional[_Union[ModelHeader, _Mapping]] = ..., nodes_chunk: _Optional[bytes] = ...) -> None: ...

class ModelHeader(_message.Message):
    __slots__ = ("deal_id", "sees_attributes", "nodes")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEES_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    sees_attributes: bool
    nodes: _array_pb2.ArrayHeader
    def __init__(self, deal_id: _Optional[str] = ..., sees_attributes: bool = ..., nodes: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class HandModelResponse(_message.Message):
    __slots__ = ("utilities",)
    UTILITIES_FIELD_NUMBER: _ClassVar[int]
    utilities: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, utilities: _Optional[_Iterable[float]] = ...) -> None: ...

class TabulateRequest(_message.Message):
    __slots__ = ("request_id", "deal_id", "epsilon")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    deal_id: str
    epsilon: float
    def __init__(self, request_id: _Optional[str] = ..., deal_id: _Optional[str] = ..., epsilon: _Optional[float] = ...) -> None: ...

class TabulateResponse(_message.Message):
    __slots__ = ("header", "table_chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TABLE_CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: TableHeader
    table_chunk: bytes
    def __init__(self, header: _Optional[_Union[TableHeader, _Mapping]] = ..., table_chunk: _Optional[bytes] = ...) -> None: ...

class TableHeader(_message.Message):
    __slots__ = ("table", "epsilon_charged", "epsilon_remaining")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_CHARGED_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_FIELD_NUMBER: _ClassVar[int]
    table: _array_pb2.ArrayHeader
    epsilon_charged: float
    epsilon_remaining: float
    def __init__(self, table: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., epsilon_charged: _Optional[float] = ..., epsilon_remaining: _Optional[float] = ...) -> None: ...
