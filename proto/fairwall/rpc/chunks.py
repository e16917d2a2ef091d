"""Messages of one chunk of an array, encoded and decoded by hand: a field's key, its length and the bytes.

Numbers are protobuf's, of variable length: seven bits a byte, the lowest first, the top bit set in all but the last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from mmap import mmap
from typing import TYPE_CHECKING, Any

from google.protobuf.message import Message

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_BITS = 70
"""Bits of ten bytes: more than any number of the protocol."""


def read_varint(data: bytes | memoryview | mmap, at: int) -> tuple[int, int]:
    """Return a number, and the position after it; IndexError if it does not end within the data and ten bytes.

    To read on would take a sender's megabytes for one number, in a time that grows with their square.
    """
    number = shift = 0
    while shift < _BITS:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    raise IndexError("the number does not end")


def varint(number: int) -> bytes:
    """Return a number, at least 0, in as few bytes as possible."""
    digits = bytearray()
    while number >= 0x80:
        digits.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*digits, number))


_BYTES, _LENGTH_DELIMITED = 12, 2  # a field's type, as descriptors number it; the layout of its value
_ONE_BYTE_KEYS = 16  # the fields below have a key of one byte


class Chunk:
    """A received message in which only a chunk, the field `part`, is set; it reads like a generated message."""

    __slots__ = ("_data", "_part")

    def __init__(self, part: str, data: memoryview) -> None:
        self._part = part
        self._data = data

    def WhichOneof(self, _: str) -> str:  # noqa: N802 - protobuf's own name
        """Return the field that is set."""
        return self._part

    def __getattr__(self, name: str) -> memoryview:
        """Return the bytes of the field that is set."""
        if name != self._part:
            raise AttributeError(name)
        return self._data


def encoded(array: NDArray[np.generic], message: type[Message], part: str) -> Iterator[bytes]:
    """Yield an array as encoded messages, each with a chunk in the field `part` of a generated message."""
    from fairwall.rpc.arrays import pieces_of  # numpy is imported confined, and a recorder needs none

    key = varint((message.DESCRIPTOR.fields_by_name[part].number << 3) | _LENGTH_DELIMITED)
    for piece in pieces_of(array):
        yield b"".join((key, varint(len(piece)), piece))


def serialize(message: Message | bytes) -> bytes:
    """Return a message's encoding, or bytes unchanged: the serializer of a stub that sends chunks."""
    return message if isinstance(message, bytes) else message.SerializeToString()


def decoder(descriptor: Any, deserialize: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    """Return a decoder of a message type that makes a `Chunk` without copying, or else calls `deserialize`."""
    parts = _parts(descriptor)

    def decode(data: bytes) -> Any:
        part = parts.get(data[0]) if data else None
        if part is not None:
            start = _start_of_whole(data)
            if start:
                return Chunk(part, memoryview(data)[start:])
        return deserialize(data)

    return decode


def _start_of_whole(data: bytes) -> int:
    """Return the start of a message's first field's bytes if these reach to the message's end, else 0."""
    try:
        size, start = read_varint(data, 1)
    except IndexError:
        return 0
    # A length may be written in more bytes than needed: protobuf knows the limit.
    return start if start + size == len(data) and start == 1 + len(varint(size)) else 0


@cache
def _parts(descriptor: Any) -> dict[int, str]:
    """Return, by key, the fields of bytes that may be the only one set in a message."""
    return {
        (field.number << 3) | _LENGTH_DELIMITED: field.name
        for field in descriptor.fields
        if field.type == _BYTES and field.containing_oneof is not None and field.number < _ONE_BYTE_KEYS
    }
