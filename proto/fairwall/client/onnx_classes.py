"""Which classes a model in ONNX was fitted to, read without a library of ONNX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from fairwall.tables.values import favourable

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and a model may hold rows about people."""

_ATTRIBUTES, _NAME, _INTS, _STRINGS = (7, 1, 5), 1, 8, 9
"""Where a model's graph has its nodes' attributes, and what is in one."""


def check_classes(model: bytes, positive: object = None) -> None:
    """Make sure that a model's second score, which counts, is of the favourable class; ValueError if nobody says so."""
    try:
        attributes = [list(_fields(each)) for each in _below(model, *_ATTRIBUTES)]
        named = [of for of in attributes if any(n == _NAME and told.startswith(b"classlabels") for n, told in of)]
        found = [told for n, told in named[-1] if n in (_INTS, _STRINGS)] if named else []
        classes = [each.decode() if isinstance(each, bytes) else each - (each >> 63 << 64) for each in found]
    except (AttributeError, DecodeError, TypeError, UnicodeDecodeError):  # no ONNX, which the service says
        return
    if len(classes) == 2 and favourable(classes, positive) != 1:
        raise ValueError(
            f"a model's second score counts, and is of {classes[1]!r}: fit it so that it is of the other class"
        )


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Give each field's number, and its bytes or whole number; those of packed whole numbers below 128 apart."""
    fields: Any = UnknownFieldSet(Empty.FromString(message))  # whose stubs leave out that it is a sequence
    for field in fields:
        packed = field.field_number == _INTS and isinstance(field.data, bytes)
        yield from ((field.field_number, each) for each in (field.data if packed else (field.data,)))


def _below(message: bytes, *path: int) -> Iterator[bytes]:
    if not path:
        yield message
        return
    for number, below in _fields(message):
        if number == path[0]:
            yield from _below(below, *path[1:])
