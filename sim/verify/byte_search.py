"""Searches bytes for a column of two values, such as a protected attribute, in any encoding.

The search looks for the places where the column changes from one person to the next. These are the same for either
polarity and for any two values of any width: 0 and 1, -1 and 1, "M" and "F", as bytes, integers or floats of either
byte order, since some byte of two values differs. So a column is found at every stride searched, the distance in bytes
from one person's value to the next one's, and as packed bits in either order of bits; from the first person on or from
the last.

A column of n people of whom n0 are in one group is one of C(n, n0). Values independent of it, with the same
frequencies, hold it at a given place with a chance of about 1 / C(n, n0); other values, with less. From 40 bits on,
log2 C(n, n0), every place is searched: 100 MB of 8-byte values have 5e7 places, along rows and columns, forwards and
backwards, so chance finds a column there less than once in ten thousand times. From 20 bits on, only data exactly as
long as the column are compared; below that, none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import comb, log2

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Ints

ANYWHERE_BITS = 40.0
WHOLE_BITS = 20.0
NARROW = (1, 2, 4, 8)
"""The strides of arrays, in bytes: the widths of their elements, row lengths aside."""

WIDE = tuple(range(1, 17))
"""The strides of other data, in bytes: text separators or message tags may lie between two people."""

_WINDOW = 16  # changes that make up a code
_BLOCK_BYTES = 4 << 20
_REVERSED = np.array([int(f"{byte:08b}"[::-1], 2) for byte in range(256)], np.uint8)

Codes = NDArray[np.uint16]


@dataclass(frozen=True, eq=False)
class SoughtColumn:
    """A column to search for: (people,), 0 or 1."""

    name: str
    values: Bytes

    @property
    def bits(self) -> float:
        """Improbability in bits: log2 of the number of columns with the same group sizes."""
        return log2(comb(len(self.values), int(self.values.sum())))


@dataclass(frozen=True)
class ColumnMatch:
    """A column found: its first byte, and its encoding."""

    column: SoughtColumn
    at: int
    how: str


@dataclass(frozen=True, eq=False)
class _Pattern:
    """The places where a column changes, in one order of rows.

    ``codes``, (changes - 15,), have 16 changes each, from every change on, as bits. ``rarest`` is the index of the code
    with the most changes, together with the next one: runs of equal values are everywhere.
    """

    column: SoughtColumn
    order: str
    changes: int
    codes: Codes
    rarest: int

    @property
    def key(self) -> int:
        """The rarest code and the next one, in one number."""
        return int(self.codes[self.rarest]) << _WINDOW | int(self.codes[self.rarest + _WINDOW])

    @property
    def checks(self) -> list[int]:
        """Indices of codes that together hold every change."""
        return [*range(0, self.changes - _WINDOW, _WINDOW), self.changes - _WINDOW]


class ByteSearch:
    """A search for columns, prepared for many calls."""

    def __init__(self, columns: Iterable[SoughtColumn]) -> None:
        known = list(columns)
        self._anywhere = [column for column in known if column.bits >= ANYWHERE_BITS]
        self._whole: dict[bytes, list[tuple[SoughtColumn, str]]] = {}
        for column in known:
            if WHOLE_BITS <= column.bits < ANYWHERE_BITS:
                for order, values in _orders(column):
                    self._whole.setdefault(_split(values), []).append((column, order))
        self.too_small = [column for column in known if column.bits < WHOLE_BITS]
        patterns = [pattern for column in self._anywhere for pattern in _patterns(column)]
        self._patterns = sorted(patterns, key=lambda pattern: pattern.key)
        self._keys = np.array([pattern.key for pattern in self._patterns], np.uint32)
        self._likely = np.zeros(1 << _WINDOW, np.bool_)
        self._likely[self._keys >> _WINDOW] = True
        self._longest = max((len(column.values) for column in self._anywhere), default=0)

    def __call__(self, data: bytes, strides: Sequence[int] = WIDE) -> list[ColumnMatch]:
        """Return the columns found in bytes, each once per stride or order of bits.

        ``strides`` are the distances to search, in bytes, from one person's value to the next one's.
        """
        found = list(self._as_a_whole(data))
        if not self._anywhere or not data:
            return found
        overlap = self._longest * max(strides)
        seen: dict[tuple[SoughtColumn, str], ColumnMatch] = {}
        for start in range(0, len(data), _BLOCK_BYTES):
            block = np.frombuffer(data, np.uint8, min(len(data) - start, _BLOCK_BYTES + overlap), start)
            for hit in self._in_block(block, strides):
                seen.setdefault((hit.column, hit.how), ColumnMatch(hit.column, start + hit.at, hit.how))
        return found + list(seen.values())

    def _as_a_whole(self, data: bytes) -> Iterator[ColumnMatch]:
        """Compare the whole data with columns, as elements of one width or as bits."""
        whole = np.frombuffer(data, np.uint8)
        for people in {len(split) for split in self._whole}:
            candidates: list[tuple[str, Bytes]] = []
            if len(data) in (people * width for width in NARROW):
                width = len(data) // people
                candidates += [(f"one value every {width} bytes", whole[place::width]) for place in range(width)]
            if len(data) == (people + 7) // 8:
                candidates.append(("bits, first bit first", np.unpackbits(whole)[:people]))
                candidates.append(("bits, last bit first", np.unpackbits(whole, bitorder="little")[:people]))
            for how, values in candidates:
                if len(np.unique(values)) == 2:
                    for column, order in self._whole.get(_split(values), ()):
                        yield ColumnMatch(column, 0, f"{how}, {order}")

    def _in_block(self, block: Bytes, strides: Sequence[int]) -> Iterator[ColumnMatch]:
        for stride in strides:
            codes = _codes((block[stride:] != block[:-stride]).view(np.uint8), stride)
            likely = np.flatnonzero(self._likely[codes])

            def at_byte(places: Ints, codes: Codes = codes) -> Codes:
                return codes[places]

            for at, pattern in self._matches(len(codes), at_byte, likely, stride):
                people = block[at : at + (pattern.changes + 1) * stride : stride]
                if len(np.unique(people)) == 2:
                    yield ColumnMatch(pattern.column, at, f"one value every {stride} bytes, {pattern.order}")
        for order, ordered in (("first bit first", block), ("last bit first", _REVERSED[block])):
            changes = _bit_changes(ordered)

            def at_bit(places: Ints, changes: NDArray[np.uint32] = changes) -> Codes:
                shift = (16 - (places & 7)).astype(np.uint32)
                codes: Codes = (changes[places >> 3] >> shift).astype(np.uint16)
                return codes

            bits = 8 * len(ordered)
            likely = np.concatenate(
                [
                    np.flatnonzero(self._likely[(changes >> np.uint32(16 - shift)).astype(np.uint16)]) * 8 + shift
                    for shift in range(8)
                ]
            )
            for at, pattern in self._matches(bits, at_bit, likely, 1):
                if at + pattern.changes < bits:
                    yield ColumnMatch(pattern.column, at // 8, f"bits, {order}, {pattern.order}")

    def _matches(
        self, length: int, code_at: Callable[[Ints], Codes], likely: Ints, stride: int
    ) -> Iterator[tuple[int, _Pattern]]:
        """Yield the places where a pattern stands in full, among likely ones, which have a pattern's rarest code.

        ``stride`` is the number of places from one change to the next.
        """
        likely = likely[likely + _WINDOW * stride < length]
        found = code_at(likely).astype(np.uint32) << _WINDOW | code_at(likely + _WINDOW * stride)
        known = self._keys[np.searchsorted(self._keys, found) % len(self._keys)] == found
        likely, found = likely[known], found[known]
        for key in np.unique(found):
            places = likely[found == key]
            for number in range(np.searchsorted(self._keys, key), np.searchsorted(self._keys, key, "right")):
                pattern = self._patterns[number]
                starts = places - pattern.rarest * stride
                last = starts + (pattern.changes - _WINDOW) * stride
                starts = starts[(starts >= 0) & (last < length)]
                for check in pattern.checks:
                    starts = starts[code_at(starts + check * stride) == pattern.codes[check]]
                yield from ((int(start), pattern) for start in starts)


def _orders(column: SoughtColumn) -> Iterator[tuple[str, Bytes]]:
    yield "in the order of the rows", column.values
    yield "from the last row on", column.values[::-1]


def _patterns(column: SoughtColumn) -> Iterator[_Pattern]:
    for order, values in _orders(column):
        changes = (values[1:] != values[:-1]).view(np.uint8)
        codes = _codes(changes, 1)
        counts = np.bitwise_count(codes)
        yield _Pattern(column, order, len(changes), codes, int((counts[:-_WINDOW] + counts[_WINDOW:]).argmax()))


def _codes(changes: Bytes, stride: int) -> Codes:
    """Return, from every place on, a number of 16 changes, each one stride after the previous one."""
    codes = changes
    for width in (1, 2, 4):
        step = width * stride
        codes = (codes[:-step] << np.uint8(width)) | codes[step:]
    step = 8 * stride
    return (codes[:-step].astype(np.uint16) << np.uint16(8)) | codes[step:]


def _bit_changes(data: Bytes) -> NDArray[np.uint32]:
    """Return, from each byte on, the changes between the next 32 bits, the first change in the highest bit."""
    words = np.concatenate((data, np.zeros(3, np.uint8))).astype(np.uint32)
    for width in (1, 2):
        words = (words[:-width] << np.uint32(8 * width)) | words[width:]
    changes: NDArray[np.uint32] = words ^ (words << np.uint32(1))
    return changes


def _split(values: Bytes) -> bytes:
    """Return which values differ from the first: the same bytes for any two values."""
    split: bytes = (values != values[0]).tobytes()
    return split
