"""Protobuf's numbers of variable length: seven bits a byte, the lowest first, the top bit set in all but the last."""

from __future__ import annotations

from mmap import mmap

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
