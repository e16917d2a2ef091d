from fairwall.wire.v1 import array_pb2 as _array_pb2
from fairwall.wire.v1 import visibility_pb2 as _visibility_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Precision(_message.Message):
    __slots__ = ("float", "decimals")
    FLOAT_FIELD_NUMBER: _ClassVar[int]
    DECIMALS_FIELD_NUMBER: _ClassVar[int]
    float: _array_pb2.ElementType
    decimals: int
    def __init__(self, float: _Optional[_Union[_array_pb2.ElementType, str]] = ..., decimals: _Optional[int] = ...) -> None: ...
