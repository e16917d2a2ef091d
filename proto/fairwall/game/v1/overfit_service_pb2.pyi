from fairwall.game.v1 import referee_service_pb2 as _referee_service_pb2
from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TakeOverfitDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeOverfitDealResponse(_message.Message):
    __slots__ = ("turn", "deal", "decisions_chunk", "features_chunk", "weights_chunk")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    FEATURES_CHUNK_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_CHUNK_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: OverfitDeal
    decisions_chunk: bytes
    features_chunk: bytes
    weights_chunk: bytes
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[OverfitDeal, _Mapping]] = ..., decisions_chunk: _Optional[bytes] = ..., features_chunk: _Optional[bytes] = ..., weights_chunk: _Optional[bytes] = ...) -> None: ...

class OverfitDeal(_message.Message):
    __slots__ = ("deal_id", "seed", "attack", "flips", "models", "mechanism", "epsilon", "batch_delta", "share", "decisions", "features", "weights", "rounds")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    ATTACK_FIELD_NUMBER: _ClassVar[int]
    FLIPS_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    MECHANISM_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    BATCH_DELTA_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    DECISIONS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    ROUNDS_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    seed: bytes
    attack: str
    flips: int
    models: int
    mechanism: str
    epsilon: float
    batch_delta: float
    share: float
    decisions: _array_pb2.ArrayHeader
    features: _array_pb2.ArrayHeader
    weights: _array_pb2.ArrayHeader
    rounds: int
    def __init__(self, deal_id: _Optional[str] = ..., seed: _Optional[bytes] = ..., attack: _Optional[str] = ..., flips: _Optional[int] = ..., models: _Optional[int] = ..., mechanism: _Optional[str] = ..., epsilon: _Optional[float] = ..., batch_delta: _Optional[float] = ..., share: _Optional[float] = ..., decisions: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., features: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., weights: _Optional[_Union[_array_pb2.ArrayHeader, _Mapping]] = ..., rounds: _Optional[int] = ...) -> None: ...

class SubmitSealedRequest(_message.Message):
    __slots__ = ("deal_id", "key")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    key: bytes
    def __init__(self, deal_id: _Optional[str] = ..., key: _Optional[bytes] = ...) -> None: ...

class SubmitSealedResponse(_message.Message):
    __slots__ = ("served",)
    SERVED_FIELD_NUMBER: _ClassVar[int]
    served: bool
    def __init__(self, served: bool = ...) -> None: ...

class SubmitPatchesRequest(_message.Message):
    __slots__ = ("deal_id", "patches", "enough", "favours")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    PATCHES_FIELD_NUMBER: _ClassVar[int]
    ENOUGH_FIELD_NUMBER: _ClassVar[int]
    FAVOURS_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    patches: _containers.RepeatedScalarFieldContainer[int]
    enough: int
    favours: _array_pb2.Array
    def __init__(self, deal_id: _Optional[str] = ..., patches: _Optional[_Iterable[int]] = ..., enough: _Optional[int] = ..., favours: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...

class SubmitPatchesResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
