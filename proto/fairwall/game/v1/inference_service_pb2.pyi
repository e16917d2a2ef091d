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

class Iterations(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    ITERATIONS_UNSPECIFIED: _ClassVar[Iterations]
    ITERATIONS_STEPS: _ClassVar[Iterations]
    ITERATIONS_EPOCHS: _ClassVar[Iterations]
ITERATIONS_UNSPECIFIED: Iterations
ITERATIONS_STEPS: Iterations
ITERATIONS_EPOCHS: Iterations

class TakeTrainingDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeTrainingDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "bits_chunk", "features_chunk", "labels_chunk", "groups_chunk", "test_features_chunk", "audited_features_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    BITS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    GROUPS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    TEST_FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    AUDITED_FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: TrainingDeal
    bits_chunk: bytes
    features_chunk: bytes
    labels_chunk: bytes
    groups_chunk: bytes
    test_features_chunk: bytes
    audited_features_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[TrainingDeal, _Mapping]] = ..., bits_chunk: _Optional[bytes] = ..., features_chunk: _Optional[bytes] = ..., labels_chunk: _Optional[bytes] = ..., groups_chunk: _Optional[bytes] = ..., test_features_chunk: _Optional[bytes] = ..., audited_features_chunk: _Optional[bytes] = ...) -> None: ...

class TrainingDeal(_message.Message):
    __slots__ = ("deal_id", "seed", "training", "bits", "features", "labels", "groups", "test_features", "holds_protected", "labels_only", "member_rows", "strengths", "metric", "audit_epsilon", "audited_features")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    BITS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    TEST_FEATURES_FIELD_NUMBER: _ClassVar[int]
    HOLDS_PROTECTED_FIELD_NUMBER: _ClassVar[int]
    LABELS_ONLY_FIELD_NUMBER: _ClassVar[int]
    MEMBER_ROWS_FIELD_NUMBER: _ClassVar[int]
    STRENGTHS_FIELD_NUMBER: _ClassVar[int]
    METRIC_FIELD_NUMBER: _ClassVar[int]
    AUDIT_EPSILON_FIELD_NUMBER: _ClassVar[int]
    AUDITED_FEATURES_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    seed: bytes
    training: Training
    bits: _array_pb2.ArrayHeader
    features: _array_pb2.ArrayHeader
    labels: _array_pb2.ArrayHeader
    groups: _array_pb2.ArrayHeader
    test_features: _array_pb2.ArrayHeader
    holds_protected: bool
    labels_only: bool
    member_rows: int
    strengths: _containers.RepeatedScalarFieldContainer[float]
    metric: _metric_pb2.Metric
    audit_epsilon: float
    audited_features: _array_pb2.ArrayHeader
    def __init__(self, deal_id: _Optional[str] = ..., seed: _Optional[bytes] = ..., training: _Optional[_Union[Training, _Mapping]] = ..., bits: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., groups: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., test_features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., holds_protected: bool = ..., labels_only: bool = ..., member_rows: _Optional[int] = ..., strengths: _Optional[_Iterable[float]] = ..., metric: _Optional[_Union[_metric_pb2.Metric, str]] = ..., audit_epsilon: _Optional[float] = ..., audited_features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class Training(_message.Message):
    __slots__ = ("defence", "strength", "rehearsal", "purity", "epsilon", "delta", "rows", "other_rows", "steps", "tune_steps", "adaptive_clipping", "iterations", "small_table")
    DEFENCE_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_FIELD_NUMBER: _ClassVar[int]
    REHEARSAL_FIELD_NUMBER: _ClassVar[int]
    PURITY_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    DELTA_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    OTHER_ROWS_FIELD_NUMBER: _ClassVar[int]
    STEPS_FIELD_NUMBER: _ClassVar[int]
    TUNE_STEPS_FIELD_NUMBER: _ClassVar[int]
    ADAPTIVE_CLIPPING_FIELD_NUMBER: _ClassVar[int]
    ITERATIONS_FIELD_NUMBER: _ClassVar[int]
    SMALL_TABLE_FIELD_NUMBER: _ClassVar[int]
    defence: str
    strength: float
    rehearsal: float
    purity: float
    epsilon: float
    delta: float
    rows: int
    other_rows: int
    steps: int
    tune_steps: int
    adaptive_clipping: bool
    iterations: Iterations
    small_table: bool
    def __init__(self, defence: _Optional[str] = ..., strength: _Optional[float] = ..., rehearsal: _Optional[float] = ..., purity: _Optional[float] = ..., epsilon: _Optional[float] = ..., delta: _Optional[float] = ..., rows: _Optional[int] = ..., other_rows: _Optional[int] = ..., steps: _Optional[int] = ..., tune_steps: _Optional[int] = ..., adaptive_clipping: bool = ..., iterations: _Optional[_Union[Iterations, str]] = ..., small_table: bool = ...) -> None: ...

class SubmitModelsRequest(_message.Message):
    __slots__ = ("deal_id", "scores", "base_scores", "member_scores", "base_member_scores", "strength", "queries")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    BASE_SCORES_FIELD_NUMBER: _ClassVar[int]
    MEMBER_SCORES_FIELD_NUMBER: _ClassVar[int]
    BASE_MEMBER_SCORES_FIELD_NUMBER: _ClassVar[int]
    STRENGTH_FIELD_NUMBER: _ClassVar[int]
    QUERIES_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    scores: _array_pb2.Array
    base_scores: _array_pb2.Array
    member_scores: _array_pb2.Array
    base_member_scores: _array_pb2.Array
    strength: float
    queries: int
    def __init__(self, deal_id: _Optional[str] = ..., scores: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., base_scores: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., member_scores: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., base_member_scores: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., strength: _Optional[float] = ..., queries: _Optional[int] = ...) -> None: ...

class SubmitModelsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TakeAttackDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeAttackDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "features_chunk", "labels_chunk", "groups_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    GROUPS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: AttackDeal
    features_chunk: bytes
    labels_chunk: bytes
    groups_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[AttackDeal, _Mapping]] = ..., features_chunk: _Optional[bytes] = ..., labels_chunk: _Optional[bytes] = ..., groups_chunk: _Optional[bytes] = ...) -> None: ...

class AttackDeal(_message.Message):
    __slots__ = ("deal_id", "seed", "attacks", "models", "probes", "shadows", "labels_only", "training", "adapts", "features", "labels", "groups")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    ATTACKS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    PROBES_FIELD_NUMBER: _ClassVar[int]
    SHADOWS_FIELD_NUMBER: _ClassVar[int]
    LABELS_ONLY_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FIELD_NUMBER: _ClassVar[int]
    ADAPTS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    LABELS_FIELD_NUMBER: _ClassVar[int]
    GROUPS_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    seed: bytes
    attacks: _containers.RepeatedScalarFieldContainer[str]
    models: int
    probes: int
    shadows: int
    labels_only: bool
    training: Training
    adapts: bool
    features: _array_pb2.ArrayHeader
    labels: _array_pb2.ArrayHeader
    groups: _array_pb2.ArrayHeader
    def __init__(self, deal_id: _Optional[str] = ..., seed: _Optional[bytes] = ..., attacks: _Optional[_Iterable[str]] = ..., models: _Optional[int] = ..., probes: _Optional[int] = ..., shadows: _Optional[int] = ..., labels_only: bool = ..., training: _Optional[_Union[Training, _Mapping]] = ..., adapts: bool = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., groups: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class SubmitGuessesRequest(_message.Message):
    __slots__ = ("deal_id", "guesses")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    GUESSES_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    guesses: _array_pb2.Array
    def __init__(self, deal_id: _Optional[str] = ..., guesses: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...

class SubmitGuessesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
