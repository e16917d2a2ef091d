"""The compressed blocks of a page, and the blobs in them: each blob once, however many messages bring it."""

from __future__ import annotations

import base64
import zlib
from typing import NamedTuple

PAGE_BYTES_MAX = 25_000_000
"""Largest size of a page, in bytes."""

_BLOBS_BYTES_MAX = 11_000_000
_LEAST_ALONE_BYTES = 1 << 15
_PACK_BYTES = 1 << 18


class Place(NamedTuple):
    """The place of bytes: a block, the offset once it is inflated, and the size."""

    block: int
    start: int
    size: int


class Blocks:
    """Blocks that a browser inflates when needed: each compressed by zlib and encoded in base64.

    A block's index in ``texts`` is its number; ``size`` is the blocks' size in the page, in bytes.
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.size = 0

    def add(self, data: bytes) -> int:
        """Add a block; return its number."""
        return self.add_packed(zlib.compress(data, 6))

    def add_packed(self, packed: bytes) -> int:
        """Add a block that is already compressed; return its number."""
        number = self.reserve()
        self.fill(number, packed)
        return number

    def reserve(self) -> int:
        """Reserve and return a number for a later block."""
        self.texts.append("")
        return len(self.texts) - 1

    def fill(self, number: int, packed: bytes) -> None:
        """Fill a reserved block with compressed bytes."""
        self.texts[number] = base64.b64encode(packed).decode()
        self.size += len(self.texts[number])

    def drop(self, numbers: list[int]) -> None:
        """Empty blocks that the page has no room for."""
        for number in numbers:
            self.size -= len(self.texts[number])
            self.texts[number] = ""


class Blobs:
    """Puts blobs into blocks, large ones alone, small ones together, within a limit of bytes of the page."""

    def __init__(self, blocks: Blocks, bytes_max: int = _BLOBS_BYTES_MAX) -> None:
        self._blocks = blocks
        self._left = bytes_max
        self._places: dict[bytes, Place | None] = {}
        self._pack = bytearray()
        self._number = -1

    def known(self, digest: bytes) -> bool:
        """Return whether a blob was put before."""
        return digest in self._places

    def put(self, digest: bytes, data: bytes, packed: bytes | None = None) -> Place | None:
        """Return the place of a blob, put once under its digest, zlib-``packed`` or not; None without room."""
        if digest not in self._places:
            self._places[digest] = self._alone(data, packed) if len(data) >= _LEAST_ALONE_BYTES else self._small(data)
        return self._places[digest]

    def close(self) -> None:
        """Write the last block of small blobs."""
        if self._pack:
            self._blocks.fill(self._number, zlib.compress(bytes(self._pack), 6))
            self._pack.clear()

    def _alone(self, data: bytes, packed: bytes | None) -> Place | None:
        packed = zlib.compress(data, 6) if packed is None else packed
        if not self._takes(len(packed)):
            return None
        return Place(self._blocks.add_packed(packed), 0, len(data))

    def _small(self, data: bytes) -> Place | None:
        if not self._takes(len(data)):  # an upper bound: small blobs are compressed together
            return None
        if not self._pack:
            self._number = self._blocks.reserve()
        place = Place(self._number, len(self._pack), len(data))
        self._pack += data
        if len(self._pack) >= _PACK_BYTES:
            self.close()
        return place

    def _takes(self, size: int) -> bool:
        in_base64 = -(-size // 3) * 4
        if in_base64 > self._left:
            return False
        self._left -= in_base64
        return True
