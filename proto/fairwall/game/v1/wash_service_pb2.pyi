from fairwall.game.v1 import referee_service_pb2 as _referee_service_pb2
from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TakeWashDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeWashDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "features_chunk", "training_features_chunk", "training_labels_chunk", "sample_features_chunk", "protected_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    TRAINING_LABELS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: WashDeal
    features_chunk: bytes
    training_features_chunk: bytes
    training_labels_chunk: bytes
    sample_features_chunk: bytes
    protected_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[WashDeal, _Mapping]] = ..., features_chunk: _Optional[bytes] = ..., training_features_chunk: _Optional[bytes] = ..., training_labels_chunk: _Optional[bytes] = ..., sample_features_chunk: _Optional[bytes] = ..., protected_chunk: _Optional[bytes] = ...) -> None: ...

class WashDeal(_message.Message):
    __slots__ = ("deal_id", "seed", "strategy", "knows", "evades", "committed", "tau", "mechanism", "epsilon", "batch_delta", "features", "training_features", "training_labels", "sample_features", "disadvantaged_rows", "protected", "holds_protected")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    KNOWS_FIELD_NUMBER: _ClassVar[int]
    EVADES_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    TAU_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    BATCH_DELTA_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    TRAINING_FEATURES_FIELD_NUMBER: _ClassVar[int]
    TRAINING_LABELS_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FEATURES_FIELD_NUMBER: _ClassVar[int]
    DISADVANTAGED_ROWS_FIELD_NUMBER: _ClassVar[int]
    PROTECTED_FIELD_NUMBER: _ClassVar[int]
    HOLDS_PROTECTED_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    seed: bytes
    strategy: str
    knows: str
    evades: bool
    committed: bool
    tau: float
    mechanism: str
    epsilon: float
    batch_delta: float
    features: _array_pb2.ArrayHeader
    training_features: _array_pb2.ArrayHeader
    training_labels: _array_pb2.ArrayHeader
    sample_features: _array_pb2.ArrayHeader
    disadvantaged_rows: int
    protected: _array_pb2.ArrayHeader
    holds_protected: bool
    def __init__(self, deal_id: _Optional[str] = ..., seed: _Optional[bytes] = ..., strategy: _Optional[str] = ..., knows: _Optional[str] = ..., evades: bool = ..., committed: bool = ..., tau: _Optional[float] = ..., mechanism: _Optional[str] = ..., epsilon: _Optional[float] = ..., batch_delta: _Optional[float] = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., training_features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., training_labels: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., sample_features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., disadvantaged_rows: _Optional[int] = ..., protected: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., holds_protected: bool = ...) -> None: ...

class SubmitCommitmentRequest(_message.Message):
    __slots__ = ("deal_id", "commitment")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    commitment: bytes
    def __init__(self, deal_id: _Optional[str] = ..., commitment: _Optional[bytes] = ...) -> None: ...

class SubmitCommitmentResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TakeCheckDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeCheckDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "features_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: CheckDeal
    features_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[CheckDeal, _Mapping]] = ..., features_chunk: _Optional[bytes] = ...) -> None: ...

class CheckDeal(_message.Message):
    __slots__ = ("deal_id", "seed", "wrong", "features")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    WRONG_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    seed: bytes
    wrong: float
    features: _array_pb2.ArrayHeader
    def __init__(self, deal_id: _Optional[str] = ..., seed: _Optional[bytes] = ..., wrong: _Optional[float] = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ...) -> None: ...

class SubmitSightingRequest(_message.Message):
    __slots__ = ("deal_id", "seen")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    seen: _array_pb2.Array
    def __init__(self, deal_id: _Optional[str] = ..., seen: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...

class SubmitSightingResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TakeAuditDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeAuditDealResponse(_message.Message):
    __slots__ = ("turn", "deal")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: AuditDeal
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[AuditDeal, _Mapping]] = ...) -> None: ...

class AuditDeal(_message.Message):
    __slots__ = ("deal_id",)
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    def __init__(self, deal_id: _Optional[str] = ...) -> None: ...

class SubmitWashRequest(_message.Message):
    __slots__ = ("deal_id", "shown", "deployed", "belief", "salt")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SHOWN_FIELD_NUMBER: _ClassVar[int]
    DEPLOYED_FIELD_NUMBER: _ClassVar[int]
    BELIEF_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    shown: _array_pb2.Array
    deployed: _array_pb2.Array
    belief: _array_pb2.Array
    salt: bytes
    def __init__(self, deal_id: _Optional[str] = ..., shown: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., deployed: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., belief: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., salt: _Optional[bytes] = ...) -> None: ...

class SubmitWashResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TakeSightingDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeSightingDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "seen_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    SEEN_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: SightingDeal
    seen_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[SightingDeal, _Mapping]] = ..., seen_chunk: _Optional[bytes] = ...) -> None: ...

class SightingDeal(_message.Message):
    __slots__ = ("deal_id", "rows", "seen", "wrong", "alarm", "committed", "commitment", "salt")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SEEN_FIELD_NUMBER: _ClassVar[int]
    WRONG_FIELD_NUMBER: _ClassVar[int]
    ALARM_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    SALT_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    rows: _containers.RepeatedScalarFieldContainer[int]
    seen: _array_pb2.ArrayHeader
    wrong: float
    alarm: float
    committed: bool
    commitment: bytes
    salt: bytes
    def __init__(self, deal_id: _Optional[str] = ..., rows: _Optional[_Iterable[int]] = ..., seen: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., wrong: _Optional[float] = ..., alarm: _Optional[float] = ..., committed: bool = ..., commitment: _Optional[bytes] = ..., salt: _Optional[bytes] = ...) -> None: ...

class SubmitVerdictRequest(_message.Message):
    __slots__ = ("deal_id", "contradictions", "broken", "accused")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    CONTRADICTIONS_FIELD_NUMBER: _ClassVar[int]
    BROKEN_FIELD_NUMBER: _ClassVar[int]
    ACCUSED_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    contradictions: int
    broken: bool
    accused: bool
    def __init__(self, deal_id: _Optional[str] = ..., contradictions: _Optional[int] = ..., broken: bool = ..., accused: bool = ...) -> None: ...

class SubmitVerdictResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
