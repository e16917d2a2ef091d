from fairwall.wire.v1 import error_pb2 as _error_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Direction(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    DIRECTION_UNSPECIFIED: _ClassVar[Direction]
    DIRECTION_SENT: _ClassVar[Direction]
    DIRECTION_RECEIVED: _ClassVar[Direction]

class Side(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    SIDE_UNSPECIFIED: _ClassVar[Side]
    SIDE_CALLER: _ClassVar[Side]
    SIDE_SERVER: _ClassVar[Side]
DIRECTION_UNSPECIFIED: Direction
DIRECTION_SENT: Direction
DIRECTION_RECEIVED: Direction
SIDE_UNSPECIFIED: Side
SIDE_CALLER: Side
SIDE_SERVER: Side

class Entry(_message.Message):
    __slots__ = ("header", "stored", "message", "ended", "closed", "numerics", "digest")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    STORED_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    ENDED_FIELD_NUMBER: _ClassVar[int]
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    NUMERICS_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    header: Header
    stored: Stored
    message: Message
    ended: Ended
    closed: Closed
    numerics: Numerics
    digest: bytes
    def __init__(self, header: _Optional[_Union[Header, _Mapping]] = ..., stored: _Optional[_Union[Stored, _Mapping]] = ..., message: _Optional[_Union[Message, _Mapping]] = ..., ended: _Optional[_Union[Ended, _Mapping]] = ..., closed: _Optional[_Union[Closed, _Mapping]] = ..., numerics: _Optional[_Union[Numerics, _Mapping]] = ..., digest: _Optional[bytes] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("format", "run", "party", "scenario_digest", "record", "versions", "layers")
    FORMAT_FIELD_NUMBER: _ClassVar[int]
    RUN_FIELD_NUMBER: _ClassVar[int]
    PARTY_FIELD_NUMBER: _ClassVar[int]
    SCENARIO_DIGEST_FIELD_NUMBER: _ClassVar[int]
    RECORD_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    LAYERS_FIELD_NUMBER: _ClassVar[int]
    format: int
    run: str
    party: str
    scenario_digest: str
    record: str
    versions: _containers.RepeatedCompositeFieldContainer[Version]
    layers: _containers.RepeatedCompositeFieldContainer[Layer]
    def __init__(self, format: _Optional[int] = ..., run: _Optional[str] = ..., party: _Optional[str] = ..., scenario_digest: _Optional[str] = ..., record: _Optional[str] = ..., versions: _Optional[_Iterable[_Union[Version, _Mapping]]] = ..., layers: _Optional[_Iterable[_Union[Layer, _Mapping]]] = ...) -> None: ...

class Layer(_message.Message):
    __slots__ = ("name", "active", "why_not")
    NAME_FIELD_NUMBER: _ClassVar[int]
    ACTIVE_FIELD_NUMBER: _ClassVar[int]
    WHY_NOT_FIELD_NUMBER: _ClassVar[int]
    name: str
    active: bool
    why_not: str
    def __init__(self, name: _Optional[str] = ..., active: bool = ..., why_not: _Optional[str] = ...) -> None: ...

class Version(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class Numerics(_message.Message):
    __slots__ = ("parts",)
    PARTS_FIELD_NUMBER: _ClassVar[int]
    parts: _containers.RepeatedCompositeFieldContainer[Kernels]
    def __init__(self, parts: _Optional[_Iterable[_Union[Kernels, _Mapping]]] = ...) -> None: ...

class Kernels(_message.Message):
    __slots__ = ("name", "in_use")
    NAME_FIELD_NUMBER: _ClassVar[int]
    IN_USE_FIELD_NUMBER: _ClassVar[int]
    name: str
    in_use: str
    def __init__(self, name: _Optional[str] = ..., in_use: _Optional[str] = ...) -> None: ...

class Stored(_message.Message):
    __slots__ = ("content_digest", "compressed", "data")
    CONTENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    COMPRESSED_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    content_digest: bytes
    compressed: bool
    data: bytes
    def __init__(self, content_digest: _Optional[bytes] = ..., compressed: bool = ..., data: _Optional[bytes] = ...) -> None: ...

class Call(_message.Message):
    __slots__ = ("peer", "side", "number", "method")
    PEER_FIELD_NUMBER: _ClassVar[int]
    SIDE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    METHOD_FIELD_NUMBER: _ClassVar[int]
    peer: str
    side: Side
    number: int
    method: str
    def __init__(self, peer: _Optional[str] = ..., side: _Optional[_Union[Side, str]] = ..., number: _Optional[int] = ..., method: _Optional[str] = ...) -> None: ...

class Message(_message.Message):
    __slots__ = ("call", "direction", "content", "large")
    CALL_FIELD_NUMBER: _ClassVar[int]
    DIRECTION_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    LARGE_FIELD_NUMBER: _ClassVar[int]
    call: Call
    direction: Direction
    content: bytes
    large: _containers.RepeatedCompositeFieldContainer[Large]
    def __init__(self, call: _Optional[_Union[Call, _Mapping]] = ..., direction: _Optional[_Union[Direction, str]] = ..., content: _Optional[bytes] = ..., large: _Optional[_Iterable[_Union[Large, _Mapping]]] = ...) -> None: ...

class Large(_message.Message):
    __slots__ = ("offset", "size", "content_digest")
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    SIZE_FIELD_NUMBER: _ClassVar[int]
    CONTENT_DIGEST_FIELD_NUMBER: _ClassVar[int]
    offset: int
    size: int
    content_digest: bytes
    def __init__(self, offset: _Optional[int] = ..., size: _Optional[int] = ..., content_digest: _Optional[bytes] = ...) -> None: ...

class Ended(_message.Message):
    __slots__ = ("call", "status", "reason")
    CALL_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    call: Call
    status: int
    reason: _error_pb2.Reason
    def __init__(self, call: _Optional[_Union[Call, _Mapping]] = ..., status: _Optional[int] = ..., reason: _Optional[_Union[_error_pb2.Reason, str]] = ...) -> None: ...

class Closed(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
