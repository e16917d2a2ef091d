"""Read the classes that an ONNX model was fitted to, without an ONNX library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from google.protobuf.empty_pb2 import Empty
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from fairwall.tables.values import favourable

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: a model may hold rows about people."""

_ATTRIBUTES, _NAME, _INTS, _STRINGS = (7, 1, 5), 1, 8, 9
"""Field numbers: of the path to the attributes of a model's nodes, and of an attribute's contents."""


def check_classes(model: bytes, positive: object = None) -> None:
    """Raise ValueError if a model names two classes, and the second, whose score counts, is not the favourable one."""
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
    """Yield each field's number, and its bytes or whole number; packed whole numbers below 128 come one by one."""
    fields: Any = UnknownFieldSet(Empty.FromString(message))  # a sequence, which its stubs leave out
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
