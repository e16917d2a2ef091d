from fairwall.game.v1 import referee_service_pb2 as _referee_service_pb2
from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import metric_pb2 as _metric_pb2
from fairwall.wire.v1 import precision_pb2 as _precision_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class BaseModel(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    BASE_MODEL_UNSPECIFIED: _ClassVar[BaseModel]
    BASE_MODEL_LOGISTIC: _ClassVar[BaseModel]
    BASE_MODEL_IDENTITY: _ClassVar[BaseModel]
BASE_MODEL_UNSPECIFIED: BaseModel
BASE_MODEL_LOGISTIC: BaseModel
BASE_MODEL_IDENTITY: BaseModel

class TakeDeveloperDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeDeveloperDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "features_chunk", "labels_chunk", "public_features_chunk", "public_labels_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: DeveloperDeal
    features_chunk: bytes
    labels_chunk: bytes
    public_features_chunk: bytes
    public_labels_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[DeveloperDeal, _Mapping]] = ..., features_chunk: _Optional[bytes] = ..., labels_chunk: _Optional[bytes] = ..., public_features_chunk: _Optional[bytes] = ..., public_labels_chunk: _Optional[bytes] = ...) -> None: ...

class DeveloperDeal(_message.Message):
    __slots__ = ("deal_id", "seed", "metric", "epsilon", "strategy", "decoder", "queries", "perturbation", "base_model", "training_digest", "release_model", "features", "labels", "mechanism", "batch_delta", "precision", "disadvantaged", "public_disadvantaged_rows", "public_features", "public_labels", "reveal_max")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    DECODER_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    PERTURBATION_FIELD_NUMBER: _ClassVar[int]
    BASE_MODEL_FIELD_NUMBER: _ClassVar[int]
    TRAINING_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RELEASE_MODEL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    BATCH_DELTA_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    DISADVANTAGED_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_DISADVANTAGED_ROWS_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_FEATURES_FIELD_NUMBER: _ClassVar[int]
    PUBLIC_LABELS_FIELD_NUMBER: _ClassVar[int]
    REVEAL_MAX_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    seed: bytes
    metric: _metric_pb2.Metric
    epsilon: float
    strategy: str
    decoder: str
    queries: QueryCount
    perturbation: float
    base_model: BaseModel
    training_digest: str
    release_model: bool
    features: _array_pb2.ArrayHeader
    labels: _array_pb2.ArrayHeader
    mechanism: str
    batch_delta: float
    precision: _precision_pb2.Precision
    disadvantaged: _containers.RepeatedScalarFieldContainer[int]
    public_disadvantaged_rows: int
    public_features: _array_pb2.ArrayHeader
    public_labels: _array_pb2.ArrayHeader
    reveal_max: float
    def __init__(self, deal_id: _Optional[str] = ..., seed: _Optional[bytes] = ..., metric: _Optional[_Union[_metric_pb2.Metric, str]] = ..., epsilon: _Optional[float] = ..., strategy: _Optional[str] = ..., decoder: _Optional[str] = ..., queries: _Optional[_Union[QueryCount, _Mapping]] = ..., perturbation: _Optional[float] = ..., base_model: _Optional[_Union[BaseModel, str]] = ..., training_digest: _Optional[str] = ..., release_model: bool = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., mechanism: _Optional[str] = ..., batch_delta: _Optional[float] = ..., precision: _Optional[_Union[_precision_pb2.Precision, _Mapping]] = ..., disadvantaged: _Optional[_Iterable[int]] = ..., public_disadvantaged_rows: _Optional[int] = ..., public_features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., public_labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., reveal_max: _Optional[float] = ...) -> None: ...

class QueryCount(_message.Message):
    __slots__ = ("fixed", "people_less", "at_most")
    FIXED_FIELD_NUMBER: _ClassVar[int]
    PEOPLE_LESS_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_FIELD_NUMBER: _ClassVar[int]
    fixed: int
    people_less: int
    at_most: int
    def __init__(self, fixed: _Optional[int] = ..., people_less: _Optional[int] = ..., at_most: _Optional[int] = ...) -> None: ...

class GetTrainingTableRequest(_message.Message):
    __slots__ = ("training_digest",)
    TRAINING_DIGEST_FIELD_NUMBER: _ClassVar[int]
    training_digest: str
    def __init__(self, training_digest: _Optional[str] = ...) -> None: ...

class GetTrainingTableResponse(_message.Message):
    __slots__ = ("table", "features_chunk", "labels_chunk")
    TABLE_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    table: TrainingTable
    features_chunk: bytes
    labels_chunk: bytes
    def __init__(self, table: _Optional[_Union[TrainingTable, _Mapping]] = ..., features_chunk: _Optional[bytes] = ..., labels_chunk: _Optional[bytes] = ...) -> None: ...

class TrainingTable(_message.Message):
    __slots__ = ("features", "labels")
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    features: _array_pb2.ArrayHeader
    labels: _array_pb2.ArrayHeader
    def __init__(self, features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class SubmitRevealRequest(_message.Message):
    __slots__ = ("deal_id", "baseline", "guess", "targeted", "polarity_known", "reconstruction", "queries", "size_queries", "max_prediction_change", "accuracy_base", "accuracy_models", "guess_from_answers", "confidence")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    BASELINE_FIELD_NUMBER: _ClassVar[int]
    GUESS_FIELD_NUMBER: _ClassVar[int]
    TARGETED_FIELD_NUMBER: _ClassVar[int]
    POLARITY_KNOWN_FIELD_NUMBER: _ClassVar[int]
    RECONSTRUCTION_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    SIZE_QUERIES_FIELD_NUMBER: _ClassVar[int]
    MAX_PREDICTION_CHANGE_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_BASE_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_MODELS_FIELD_NUMBER: _ClassVar[int]
    GUESS_FROM_ANSWERS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    baseline: _array_pb2.Array
    guess: _array_pb2.Array
    targeted: _array_pb2.Array
    polarity_known: bool
    reconstruction: _array_pb2.Array
    queries: int
    size_queries: int
    max_prediction_change: float
    accuracy_base: float
    accuracy_models: _array_pb2.Array
    guess_from_answers: _array_pb2.Array
    confidence: _array_pb2.Array
    def __init__(self, deal_id: _Optional[str] = ..., baseline: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., guess: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., targeted: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., polarity_known: bool = ..., reconstruction: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., queries: _Optional[int] = ..., size_queries: _Optional[int] = ..., max_prediction_change: _Optional[float] = ..., accuracy_base: _Optional[float] = ..., accuracy_models: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., guess_from_answers: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., confidence: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...

class SubmitRevealResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ReleaseModelRequest(_message.Message):
    __slots__ = ("deal_id",)
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    def __init__(self, deal_id: _Optional[str] = ...) -> None: ...

class ReleaseModelResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TakeAdversaryDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeAdversaryDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "features_chunk", "labels_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: AdversaryDeal
    features_chunk: bytes
    labels_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[AdversaryDeal, _Mapping]] = ..., features_chunk: _Optional[bytes] = ..., labels_chunk: _Optional[bytes] = ...) -> None: ...

class AdversaryDeal(_message.Message):
    __slots__ = ("deal_id", "attack", "disadvantaged_rows", "features", "labels")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    ATTACK_FIELD_NUMBER: _ClassVar[int]
    DISADVANTAGED_ROWS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    attack: str
    disadvantaged_rows: int
    features: _array_pb2.ArrayHeader
    labels: _array_pb2.ArrayHeader
    def __init__(self, deal_id: _Optional[str] = ..., attack: _Optional[str] = ..., disadvantaged_rows: _Optional[int] = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class SubmitLossTestRequest(_message.Message):
    __slots__ = ("deal_id", "accuracy_advantaged", "accuracy_disadvantaged")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_ADVANTAGED_FIELD_NUMBER: _ClassVar[int]
    ACCURACY_DISADVANTAGED_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    accuracy_advantaged: float
    accuracy_disadvantaged: float
    def __init__(self, deal_id: _Optional[str] = ..., accuracy_advantaged: _Optional[float] = ..., accuracy_disadvantaged: _Optional[float] = ...) -> None: ...

class SubmitLossTestResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
