from fairwall.game.v1 import referee_service_pb2 as _referee_service_pb2
from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class TakeGroupDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeGroupDealResponse(_message.Message):
    __slots__ = ("turn", "deal")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: GroupDeal
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[GroupDeal, _Mapping]] = ...) -> None: ...

class GroupDeal(_message.Message):
    __slots__ = ("deal_id", "seed", "shares", "epsilon", "batches", "models", "strategy")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SHARES_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    BATCHES_FIELD_NUMBER: _ClassVar[int]
    MODELS_FIELD_NUMBER: _ClassVar[int]
    STRATEGY_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    seed: bytes
    shares: _containers.RepeatedScalarFieldContainer[float]
    epsilon: float
    batches: int
    models: int
    strategy: str
    def __init__(self, deal_id: _Optional[str] = ..., seed: _Optional[bytes] = ..., shares: _Optional[_Iterable[float]] = ..., epsilon: _Optional[float] = ..., batches: _Optional[int] = ..., models: _Optional[int] = ..., strategy: _Optional[str] = ...) -> None: ...

class SubmitGroupsRequest(_message.Message):
    __slots__ = ("deal_id", "guess")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    GUESS_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    guess: _array_pb2.Array
    def __init__(self, deal_id: _Optional[str] = ..., guess: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...

class SubmitGroupsResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
