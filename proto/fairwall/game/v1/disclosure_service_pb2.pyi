from fairwall.game.v1 import referee_service_pb2 as _referee_service_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class DisclosureMode(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DISCLOSURE_MODE_UNSPECIFIED: _ClassVar[DisclosureMode]
    DISCLOSURE_MODE_IDENTITY: _ClassVar[DisclosureMode]
    DISCLOSURE_MODE_ATTRIBUTE: _ClassVar[DisclosureMode]
    DISCLOSURE_MODE_INFERENTIAL: _ClassVar[DisclosureMode]
    DISCLOSURE_MODE_PRESENCE: _ClassVar[DisclosureMode]
DISCLOSURE_MODE_UNSPECIFIED: DisclosureMode
DISCLOSURE_MODE_IDENTITY: DisclosureMode
DISCLOSURE_MODE_ATTRIBUTE: DisclosureMode
DISCLOSURE_MODE_INFERENTIAL: DisclosureMode
DISCLOSURE_MODE_PRESENCE: DisclosureMode

class TakeDisclosureDealRequest(_message.Message):
    __slots__ = ("after_deal_id",)
    AFTER_DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    after_deal_id: str
    def __init__(self, after_deal_id: _Optional[str] = ...) -> None: ...

class TakeDisclosureDealResponse(_message.Message):
    __slots__ = ("turn", "deal")
    TURN_FIELD_NUMBER: _ClassVar[int]
    DEAL_FIELD_NUMBER: _ClassVar[int]
    turn: _referee_service_pb2.Turn
    deal: DisclosureDeal
    def __init__(self, turn: _Optional[_Union[_referee_service_pb2.Turn, str]] = ..., deal: _Optional[_Union[DisclosureDeal, _Mapping]] = ...) -> None: ...

class DisclosureDeal(_message.Message):
    __slots__ = ("deal_id", "mode", "terms", "cell", "others", "others_yes", "takes_part", "rate")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    MODE_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    CELL_FIELD_NUMBER: _ClassVar[int]
    OTHERS_FIELD_NUMBER: _ClassVar[int]
    OTHERS_YES_FIELD_NUMBER: _ClassVar[int]
    TAKES_PART_FIELD_NUMBER: _ClassVar[int]
    RATE_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    mode: DisclosureMode
    terms: _referee_service_pb2.StudyTerms
    cell: int
    others: int
    others_yes: int
    takes_part: bool
    rate: float
    def __init__(self, deal_id: _Optional[str] = ..., mode: _Optional[_Union[DisclosureMode, str]] = ..., terms: _Optional[_Union[_referee_service_pb2.StudyTerms, _Mapping]] = ..., cell: _Optional[int] = ..., others: _Optional[int] = ..., others_yes: _Optional[int] = ..., takes_part: bool = ..., rate: _Optional[float] = ...) -> None: ...

class SubmitPosteriorRequest(_message.Message):
    __slots__ = ("deal_id", "posterior", "guess", "record", "candidates")
    DEAL_ID_FIELD_NUMBER: _ClassVar[int]
    POSTERIOR_FIELD_NUMBER: _ClassVar[int]
    GUESS_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    CANDIDATES_FIELD_NUMBER: _ClassVar[int]
    deal_id: str
    posterior: float
    guess: bool
    record: int
    candidates: int
    def __init__(self, deal_id: _Optional[str] = ..., posterior: _Optional[float] = ..., guess: bool = ..., record: _Optional[int] = ..., candidates: _Optional[int] = ...) -> None: ...

class SubmitPosteriorResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
