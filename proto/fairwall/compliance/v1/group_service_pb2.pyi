from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Measure(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    MEASURE_UNSPECIFIED: _ClassVar[Measure]
    MEASURE_SELECTION_RATE: _ClassVar[Measure]
    MEASURE_TRUE_POSITIVE_RATE: _ClassVar[Measure]
    MEASURE_FALSE_POSITIVE_RATE: _ClassVar[Measure]
    MEASURE_ACCURACY: _ClassVar[Measure]
    MEASURE_MEAN_SCORE: _ClassVar[Measure]
    MEASURE_SCORING_RATE: _ClassVar[Measure]
MEASURE_UNSPECIFIED: Measure
MEASURE_SELECTION_RATE: Measure
MEASURE_TRUE_POSITIVE_RATE: Measure
MEASURE_FALSE_POSITIVE_RATE: Measure
MEASURE_ACCURACY: Measure
MEASURE_MEAN_SCORE: Measure
MEASURE_SCORING_RATE: Measure

class GetGroupTermsRequest(_message.Message):
    __slots__ = ("deal_id",)
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    def __init__(self, deal_id: _Optional[str] = ...) -> None: ...

class GetGroupTermsResponse(_message.Message):
    __slots__ = ("people", "attributes", "measures", "least_share", "epsilon", "epsilon_remaining")
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    MEASURES_FIELD_NUMBER: _ClassVar[int]
    LEAST_SHARE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_FIELD_NUMBER: _ClassVar[int]
    people: int
    attributes: _containers.RepeatedCompositeFieldContainer[GroupAttribute]
    measures: _containers.RepeatedScalarFieldContainer[Measure]
    least_share: float
    epsilon: float
    epsilon_remaining: float
    def __init__(self, people: _Optional[int] = ..., attributes: _Optional[_Iterable[_Union[GroupAttribute, _Mapping]]] = ..., measures: _Optional[_Iterable[_Union[Measure, str]]] = ..., least_share: _Optional[float] = ..., epsilon: _Optional[float] = ..., epsilon_remaining: _Optional[float] = ...) -> None: ...

class GroupAttribute(_message.Message):
    __slots__ = ("name", "values", "golden")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    GOLDEN_FIELD_NUMBER: _ClassVar[int]
    name: str
    values: _containers.RepeatedScalarFieldContainer[str]
    golden: int
    def __init__(self, name: _Optional[str] = ..., values: _Optional[_Iterable[str]] = ..., golden: _Optional[int] = ...) -> None: ...

class ByGroupRequest(_message.Message):
    __slots__ = ("header", "predictions_chunk")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    header: ByGroupHeader
    predictions_chunk: bytes
    def __init__(self, header: _Optional[_Union[ByGroupHeader, _Mapping]] = ..., predictions_chunk: _Optional[bytes] = ...) -> None: ...

class ByGroupHeader(_message.Message):
    __slots__ = ("request_id", "deal_id", "by", "measures", "epsilon", "predictions", "rows_digest")
    REQUEST_ID_FIELD_NUMBER: _ClassVar[int]
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    MEASURES_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    ROWS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    request_id: str
    deal_id: str
    by: _containers.RepeatedScalarFieldContainer[str]
    measures: _containers.RepeatedScalarFieldContainer[Measure]
    epsilon: float
    predictions: _array_pb2.ArrayHeader
    rows_digest: bytes
    def __init__(self, request_id: _Optional[str] = ..., deal_id: _Optional[str] = ..., by: _Optional[_Iterable[str]] = ..., measures: _Optional[_Iterable[_Union[Measure, str]]] = ..., epsilon: _Optional[float] = ..., predictions: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., rows_digest: _Optional[bytes] = ...) -> None: ...

class ByGroupResponse(_message.Message):
    __slots__ = ("release", "epsilon_charged", "epsilon_remaining", "epsilon_remaining_now", "rows_compared")
    RELEASE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_CHARGED_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_FIELD_NUMBER: _ClassVar[int]
    EPSILON_REMAINING_NOW_FIELD_NUMBER: _ClassVar[int]
    ROWS_COMPARED_FIELD_NUMBER: _ClassVar[int]
    release: GroupRelease
    epsilon_charged: float
    epsilon_remaining: float
    epsilon_remaining_now: float
    rows_compared: bool
    def __init__(self, release: _Optional[_Union[GroupRelease, _Mapping]] = ..., epsilon_charged: _Optional[float] = ..., epsilon_remaining: _Optional[float] = ..., epsilon_remaining_now: _Optional[float] = ..., rows_compared: bool = ...) -> None: ...

class GroupRelease(_message.Message):
    __slots__ = ("groups", "tables", "sums", "rows", "by", "measures", "least_share")
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    TABLES_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    BY_FIELD_NUMBER: _ClassVar[int]
    MEASURES_FIELD_NUMBER: _ClassVar[int]
    LEAST_SHARE_FIELD_NUMBER: _ClassVar[int]
    groups: int
    tables: _containers.RepeatedCompositeFieldContainer[GroupTable]
    sums: GroupSums
    rows: _containers.RepeatedCompositeFieldContainer[GroupRows]
    by: _containers.RepeatedCompositeFieldContainer[GroupAttribute]
    measures: _containers.RepeatedScalarFieldContainer[Measure]
    least_share: float
    def __init__(self, groups: _Optional[int] = ..., tables: _Optional[_Iterable[_Union[GroupTable, _Mapping]]] = ..., sums: _Optional[_Union[GroupSums, _Mapping]] = ..., rows: _Optional[_Iterable[_Union[GroupRows, _Mapping]]] = ..., by: _Optional[_Iterable[_Union[GroupAttribute, _Mapping]]] = ..., measures: _Optional[_Iterable[_Union[Measure, str]]] = ..., least_share: _Optional[float] = ...) -> None: ...

class GroupTable(_message.Message):
    __slots__ = ("models", "counts", "base", "hits", "rate", "golden")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    HITS_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    GOLDEN_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedScalarFieldContainer[int]
    counts: _array_pb2.Array
    base: _array_pb2.Array
    hits: _array_pb2.Array
    rate: float
    golden: _array_pb2.Array
    def __init__(self, models: _Optional[_Iterable[int]] = ..., counts: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., base: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., hits: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., rate: _Optional[float] = ..., golden: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...

class GroupSums(_message.Message):
    __slots__ = ("sums", "totals", "people", "rate")
    SUMS_FIELD_NUMBER: _ClassVar[int]
    TOTALS_FIELD_NUMBER: _ClassVar[int]
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    sums: _array_pb2.Array
    totals: _array_pb2.Array
    people: int
    rate: float
    def __init__(self, sums: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., totals: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., people: _Optional[int] = ..., rate: _Optional[float] = ...) -> None: ...

class GroupRows(_message.Message):
    __slots__ = ("counts", "reach", "base", "row", "offset", "slope", "rate")
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    REACH_FIELD_NUMBER: _ClassVar[int]
    BASE_FIELD_NUMBER: _ClassVar[int]
    ROW_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SLOPE_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    counts: _array_pb2.Array
    reach: _containers.RepeatedScalarFieldContainer[int]
    base: _array_pb2.Array
    row: _containers.RepeatedScalarFieldContainer[int]
    offset: _containers.RepeatedScalarFieldContainer[float]
    slope: _containers.RepeatedScalarFieldContainer[float]
    rate: float
    def __init__(self, counts: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., reach: _Optional[_Iterable[int]] = ..., base: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., row: _Optional[_Iterable[int]] = ..., offset: _Optional[_Iterable[float]] = ..., slope: _Optional[_Iterable[float]] = ..., rate: _Optional[float] = ...) -> None: ...
