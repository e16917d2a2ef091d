from fairwall.game.v1 import referee_service_pb2 as _referee_service_pb2
from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    VERDICT_UNSPECIFIED: _ClassVar[Verdict]
    VERDICT_CLEAR: _ClassVar[Verdict]
    VERDICT_ACCUSED: _ClassVar[Verdict]
VERDICT_UNSPECIFIED: Verdict
VERDICT_CLEAR: Verdict
VERDICT_ACCUSED: Verdict

class Commitment(_message.Message):
    __slots__ = ("rows", "rows_digest", "root", "seed_digest")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    ROWS_DIGEST_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    SEED_DIGEST_FIELD_NUMBER: _ClassVar[int]
    rows: int
    rows_digest: bytes
    root: bytes
    seed_digest: bytes
    def __init__(self, rows: _Optional[int] = ..., rows_digest: _Optional[bytes] = ..., root: _Optional[bytes] = ..., seed_digest: _Optional[bytes] = ...) -> None: ...

class ReleaseCommitmentRequest(_message.Message):
    __slots__ = ("deal_id", "commitment")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    commitment: Commitment
    def __init__(self, deal_id: _Optional[str] = ..., commitment: _Optional[_Union[Commitment, _Mapping]] = ...) -> None: ...

class ReleaseCommitmentResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class TakeCuratorDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeCuratorDealResponse(_message.Message):
    __slots__ = ("turn", "deal")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: CuratorDeal
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[CuratorDeal, _Mapping]] = ...) -> None: ...

class CuratorDeal(_message.Message):
    __slots__ = ("deal_id", "seed", "people", "requests", "epsilon", "commitment")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    PEOPLE_FIELD_NUMBER: _ClassVar[int]
    REQUESTS_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    COMMITMENT_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    seed: bytes
    people: int
    requests: int
    epsilon: float
    commitment: Commitment
    def __init__(self, deal_id: _Optional[str] = ..., seed: _Optional[bytes] = ..., people: _Optional[int] = ..., requests: _Optional[int] = ..., epsilon: _Optional[float] = ..., commitment: _Optional[_Union[Commitment, _Mapping]] = ...) -> None: ...

class SubmitAnswersRequest(_message.Message):
    __slots__ = ("deal_id", "request_ids", "predictions", "answers")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    REQUEST_IDS_FIELD_NUMBER: _ClassVar[int]
    PREDICTIONS_FIELD_NUMBER: _ClassVar[int]
    ANSWERS_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    request_ids: _containers.RepeatedScalarFieldContainer[str]
    predictions: _array_pb2.Array
    answers: _array_pb2.Array
    def __init__(self, deal_id: _Optional[str] = ..., request_ids: _Optional[_Iterable[str]] = ..., predictions: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., answers: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...

class SubmitAnswersResponse(_message.Message):
    __slots__ = ("verdict",)
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    verdict: Verdict
    def __init__(self, verdict: _Optional[_Union[Verdict, str]] = ...) -> None: ...

class SubmitOpeningRequest(_message.Message):
    __slots__ = ("deal_id", "attributes", "seed", "salt_key", "sample")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    SALT_KEY_FIELD_NUMBER: _ClassVar[int]
    SAMPLE_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    attributes: _array_pb2.Array
    seed: bytes
    salt_key: bytes
    sample: _array_pb2.Array
    def __init__(self, deal_id: _Optional[str] = ..., attributes: _Optional[_Union[_array_pb2.Array, _Mapping]] = ..., seed: _Optional[bytes] = ..., salt_key: _Optional[bytes] = ..., sample: _Optional[_Union[_array_pb2.Array, _Mapping]] = ...) -> None: ...

class SubmitOpeningResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
