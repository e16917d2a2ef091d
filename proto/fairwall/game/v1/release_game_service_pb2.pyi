from fairwall.game.v1 import referee_service_pb2 as _referee_service_pb2
from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import metric_pb2 as _metric_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TrainingInput(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TRAINING_INPUT_UNSPECIFIED: _ClassVar[TrainingInput]
    TRAINING_INPUT_RELEASED: _ClassVar[TrainingInput]
    TRAINING_INPUT_DROPPED: _ClassVar[TrainingInput]
    TRAINING_INPUT_CONSTANT: _ClassVar[TrainingInput]
TRAINING_INPUT_UNSPECIFIED: TrainingInput
TRAINING_INPUT_RELEASED: TrainingInput
TRAINING_INPUT_DROPPED: TrainingInput
TRAINING_INPUT_CONSTANT: TrainingInput

class TakeReleaseDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeReleaseDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "features_chunk", "labels_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: ReleaseDeal
    features_chunk: bytes
    labels_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[ReleaseDeal, _Mapping]] = ..., features_chunk: _Optional[bytes] = ..., labels_chunk: _Optional[bytes] = ...) -> None: ...

class ReleaseDeal(_message.Message):
    __slots__ = ("deal_id", "input", "terms", "boosting", "metrics", "audit_epsilon", "features", "labels", "searches")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    INPUT_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    BOOSTING_FIELD_NUMBER: _ClassVar[int]
    METRICS_FIELD_NUMBER: _ClassVar[int]
    AUDIT_EPSILON_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    SEARCHES_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    input: TrainingInput
    terms: _referee_service_pb2.ReleaseTerms
    boosting: Boosting
    metrics: _containers.RepeatedScalarFieldContainer[_metric_pb2.Metric]
    audit_epsilon: float
    features: _array_pb2.ArrayHeader
    labels: _array_pb2.ArrayHeader
    searches: bool
    def __init__(self, deal_id: _Optional[str] = ..., input: _Optional[_Union[TrainingInput, str]] = ..., terms: _Optional[_Union[_referee_service_pb2.ReleaseTerms, _Mapping]] = ..., boosting: _Optional[_Union[Boosting, _Mapping]] = ..., metrics: _Optional[_Iterable[_Union[_metric_pb2.Metric, str]]] = ..., audit_epsilon: _Optional[float] = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., searches: bool = ...) -> None: ...

class Boosting(_message.Message):
    __slots__ = ("seed", "depth", "rate", "trees")
    SEED_FIELD_NUMBER: _ClassVar[int]
    DEPTH_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    TREES_FIELD_NUMBER: _ClassVar[int]
    seed: int
    depth: int
    rate: float
    trees: int
    def __init__(self, seed: _Optional[int] = ..., depth: _Optional[int] = ..., rate: _Optional[float] = ..., trees: _Optional[int] = ...) -> None: ...

class SubmitBeliefsRequest(_message.Message):
    __slots__ = ("deal_id", "from_release", "from_everything", "consistent", "queries", "from_mixture")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    FROM_RELEASE_FIELD_NUMBER: _ClassVar[int]
    FROM_EVERYTHING_FIELD_NUMBER: _ClassVar[int]
    CONSISTENT_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    FROM_MIXTURE_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    from_release: _array_pb2.Array
    from_everything: _array_pb2.Array
    consistent: float
    queries: int
    from_mixture: _array_pb2.Array
    def __init__(self, deal_id: _Optional[str] = ..., from_release: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., from_everything: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., consistent: _Optional[float] = ..., queries: _Optional[int] = ..., from_mixture: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...

class SubmitBeliefsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
