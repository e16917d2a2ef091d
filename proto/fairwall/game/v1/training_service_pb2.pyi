from fairwall.game.v1 import referee_service_pb2 as _referee_service_pb2
from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TakeModelDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeModelDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "features_chunk", "labels_chunk", "protected_chunk", "test_features_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_CHUNK_FIELD_NUMBER: _ClassVar[int]
    TEST_FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: ModelDeal
    features_chunk: bytes
    labels_chunk: bytes
    protected_chunk: bytes
    test_features_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[ModelDeal, _Mapping]] = ..., features_chunk: _Optional[bytes] = ..., labels_chunk: _Optional[bytes] = ..., protected_chunk: _Optional[bytes] = ..., test_features_chunk: _Optional[bytes] = ...) -> None: ...

class ModelDeal(_message.Message):
    __slots__ = ("deal_id", "seed", "terms", "features", "labels", "protected", "test_features", "holds_protected", "statistics", "public_rows", "columns")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_FIELD_NUMBER: _ClassVar[int]
    TEST_FEATURES_FIELD_NUMBER: _ClassVar[int]
    HOLDS_PROTECTED_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_ROWS_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    seed: bytes
    terms: ModelTerms
    features: _array_pb2.ArrayHeader
    labels: _array_pb2.ArrayHeader
    protected: _array_pb2.ArrayHeader
    test_features: _array_pb2.ArrayHeader
    holds_protected: bool
    statistics: _referee_service_pb2.StatisticsTerms
    public_rows: int
    columns: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, deal_id: _Optional[str] = ..., seed: _Optional[bytes] = ..., terms: _Optional[_Union[ModelTerms, _Mapping]] = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., protected: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., test_features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., holds_protected: bool = ..., statistics: _Optional[_Union[_referee_service_pb2.StatisticsTerms, _Mapping]] = ..., public_rows: _Optional[int] = ..., columns: _Optional[_Iterable[str]] = ...) -> None: ...

class ModelTerms(_message.Message):
    __slots__ = ("model", "practice", "epsilon", "delta", "statistics_share", "strength", "steps", "batch")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    PRACTICE_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    STATISTICS_SHARE_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    BATCH_FIELD_NUMBER: _ClassVar[int]
    model: str
    practice: str
    epsilon: float
    delta: float
    statistics_share: float
    strength: float
    steps: int
    batch: int
    def __init__(self, model: _Optional[str] = ..., practice: _Optional[str] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., statistics_share: _Optional[float] = ..., strength: _Optional[float] = ..., steps: _Optional[int] = ..., batch: _Optional[int] = ...) -> None: ...

class SubmitModelRequest(_message.Message):
    __slots__ = ("deal_id", "scores", "decisions", "epsilon", "delta", "group_epsilons", "steps", "asked", "rates")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    GROUP_EPSILONS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    ASKED_FIELD_NUMBER: _ClassVar[int]
    RATES_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    scores: _array_pb2.Array
    decisions: _array_pb2.Array
    epsilon: float
    delta: float
    group_epsilons: _containers.RepeatedScalarFieldContainer[float]
    steps: _containers.RepeatedCompositeFieldContainer[PrivateStep]
    asked: int
    rates: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, deal_id: _Optional[str] = ..., scores: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., decisions: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., group_epsilons: _Optional[_Iterable[float]] = ..., steps: _Optional[_Iterable[_Union[PrivateStep, _Mapping]]] = ..., asked: _Optional[int] = ..., rates: _Optional[_Iterable[float]] = ...) -> None: ...

class PrivateStep(_message.Message):
    __slots__ = ("what", "epsilon", "delta", "of")
    WHAT_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    OF_FIELD_NUMBER: _ClassVar[int]
    what: str
    epsilon: float
    delta: float
    of: str
    def __init__(self, what: _Optional[str] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., of: _Optional[str] = ...) -> None: ...

class SubmitModelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TakeCanaryDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeCanaryDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "features_chunk", "labels_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: CanaryDeal
    features_chunk: bytes
    labels_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[CanaryDeal, _Mapping]] = ..., features_chunk: _Optional[bytes] = ..., labels_chunk: _Optional[bytes] = ...) -> None: ...

class CanaryDeal(_message.Message):
    __slots__ = ("deal_id", "terms", "features", "labels")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    terms: ModelTerms
    features: _array_pb2.ArrayHeader
    labels: _array_pb2.ArrayHeader
    def __init__(self, deal_id: _Optional[str] = ..., terms: _Optional[_Union[ModelTerms, _Mapping]] = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class SubmitCanariesRequest(_message.Message):
    __slots__ = ("deal_id", "guesses")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    GUESSES_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    guesses: _array_pb2.Array
    def __init__(self, deal_id: _Optional[str] = ..., guesses: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...

class SubmitCanariesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
