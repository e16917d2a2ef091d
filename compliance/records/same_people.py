"""Detection of two data sets about the same people, by what neither protects: ids, columns and rows.

The same people have one budget, whatever a data set is called and whichever of their columns it protects. A file's
traits are kept in the ledger as digests under the service's key, so that a file that is gone by then is compared too.
No protected column is among them, nor one that defines groups.

**Ids** (`data.id`): an id in both is one person in both, also if it lacks leading zeros in one. Of more than `_MANY`
ids those are compared that come first in an order independent of their values.

**Rows**: a row is known by its values, whatever the names and order of columns and the order of rows; and by all of
them but one, since a column that another data set protects, or leaves out, cannot be compared; and both once more
without the ids, which may be other ones there. Only rows that occur once in their file count. Say that two files of n1
<= n2 people are drawn from one population in which a row's values have probabilities p. The share of the smaller file's
people whose row occurs once in each is the sum of p (n2 p) exp(-(n1 + n2) p) on average, which is at most n2 / (e (n1 +
n2)) < 0.37. So half of them do not agree by chance. Of many rows those with the smallest digests are compared.

**Columns**: the same number of people, and columns that hold the same values, each as often. Files whose rows are too
similar to be told apart have the same people if all columns of a name agree; other files if the agreeing columns have
together so many different values that this is no chance: of k values, k - 1 counts agree. A column that counts the rows
is ignored. Where both have ids, and none is in both, it takes all columns of a name, and no chance.

Of people who stay in an **engine** the set of ids is compared, and a thousand of them: those with the smallest digests,
so that two tables that share many ids have some of these in common. Their rows and columns are not read.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.tables.columns import by_dlpack
from fairwall.tables.reading import header
from fairwall.tables.reading import read as read_table
from fairwall.wire.rows import NUMERAL, RowsError, as_array, ids_of, listed, value_of

if TYPE_CHECKING:
    import pyarrow as pa

_HALF = 0.5

_ROWS = 256
"""Most rows, those with the smallest digests, that stand for a file."""

_ROWS_MIN = 16
"""Least number of comparable rows: half of fewer is no evidence."""

_COUNTS = 20
"""Number of equal counts that is no chance: one count agrees by chance in less than half of all cases."""

_MANY = 1 << 18
"""Most ids that are all compared; also most values of a column that are encoded at once."""

_BYTES = 1 << 28
"""Most bytes of a file that are read at once, as numbers or short texts."""

_HEAD, _COLUMN, _SKETCH = struct.Struct("<16sQQI"), struct.Struct("<8s16sI?"), struct.Struct("<dI")


@dataclass(frozen=True)
class _Column:
    """One column: digests of its name and of its values in any order, the number of different values, and its role."""

    name: bytes
    values: bytes
    kinds: int
    is_id: bool


@dataclass(frozen=True)
class _Sketch:
    """Digests of rows that occur once, those within the smallest `share` of all possible digests."""

    share: float
    digests: tuple[bytes, ...]


@dataclass(frozen=True)
class Traits:
    """Traits of a file that identify its people.

    `content`: the digest of the file. `rows`: of rows by all columns, and by all but each of them; with ids, of both
    without these too. `ids`: digests of the ids, 8 bytes each; empty without ids.
    """

    content: bytes
    people: int
    columns: tuple[_Column, ...] = field(repr=False)
    rows: tuple[_Sketch, ...] = field(repr=False)
    ids: bytes = field(repr=False)

    def sealed(self, key: bytes) -> bytes:
        """Encode the traits for the ledger: without the key only the numbers of people, columns and values show."""

        def keyed(digest: bytes) -> bytes:
            return hashlib.blake2b(digest, digest_size=len(digest), key=key).digest()

        parts = [_HEAD.pack(keyed(self.content), self.people, len(self.ids), len(self.columns))]
        parts += [_COLUMN.pack(keyed(one.name), keyed(one.values), one.kinds, one.is_id) for one in self.columns]
        for sketch in self.rows:
            parts += [_SKETCH.pack(sketch.share, len(sketch.digests)), *map(keyed, sketch.digests)]
        return b"".join((*parts, *map(keyed, _each(self.ids))))


def traits_of(source: Path, hidden: Collection[str], ids: str | None = None) -> Traits:
    """Return a file's traits; DataError if the file is no table.

    `source`: a CSV or Parquet file. `hidden`: the columns that are not read: whatever is protected.
    """
    with source.open("rb") as file:
        content = hashlib.file_digest(file, "sha256").digest()[:16]
    columns: list[_Column] = []
    hashed: list[NDArray[np.uint64]] = []
    known, people = b"", 0
    for name, values in _read(source, hidden):
        people = len(values)
        if name == ids:
            known = _ids(values)
        hashes = _hashes(values)
        if hashes is not None:
            found, counts = np.unique(hashes, return_counts=True)
            whole = hashlib.sha256(found.astype("<u8").tobytes() + counts.astype("<u8").tobytes()).digest()[:16]
            columns.append(_Column(_short(name.encode()), whole, len(found), name == ids))
            hashed.append(hashes)
    of_ids = [hashes for hashes, column in zip(hashed, columns, strict=True) if column.is_id]
    return Traits(content, people, tuple(columns), tuple(_sketches(hashed, of_ids)), known)


def traits_by_ids(content: bytes, people: int, ids: Sequence[str]) -> Traits:
    """Return traits of people who stay in an engine: a digest of all ids, their number, and some of their ids."""
    return Traits(content, people, (), (_Sketch(1.0, ()),), _ids(ids))


def shared(one: bytes, other: bytes) -> str:
    """Return in words why two data sets have the same people, given their `Traits.sealed`; empty if none is known."""
    a, b = _opened(one), _opened(other)
    if a.content == b.content:
        return "the file is the same"
    if common := len(np.intersect1d(np.frombuffer(a.ids, "<u8"), np.frombuffer(b.ids, "<u8"))):
        return f"{common:,} of their ids are in both"
    fewer = min(a.people, b.people)
    for x, y in product(a.rows, b.rows):
        # A row of one sketch that the other file has is in the other sketch too, if that reaches as far.
        comparable = min(x.share, y.share) * fewer
        if comparable >= _ROWS_MIN and len({*x.digests} & {*y.digests}) >= _HALF * comparable:
            return "at least half of the rows of one are in the other"
    if a.people != b.people:
        return ""
    mine, its = ({each.name: each.values for each in of.columns if not each.is_id} for of in (a, b))
    same_named = mine.keys() & its.keys()
    all_named = bool(same_named) and all(mine[name] == its[name] for name in same_named)
    alike = {each.values: each.kinds - 1 for each in a.columns}
    agreeing = [alike[values] for values in {each.values for each in b.columns} if values in alike]
    no_chance = sum(agreeing) >= _COUNTS
    if (all_named and no_chance) if a.ids and b.ids else (all_named or no_chance):
        return f"both have {a.people:,} people, and {len(agreeing)} columns with the same values"
    return ""


def _opened(sealed: bytes) -> Traits:
    content, people, size, columns = _HEAD.unpack_from(sealed)
    place, found, rows = _HEAD.size, [], []
    for _ in range(columns):
        found.append(_Column(*_COLUMN.unpack_from(sealed, place)))
        place += _COLUMN.size
    while place < len(sealed) - size:
        share, count = _SKETCH.unpack_from(sealed, place)
        place += _SKETCH.size
        rows.append(_Sketch(share, tuple(_each(sealed[place : place + 8 * count]))))
        place += 8 * count
    return Traits(content, people, tuple(found), tuple(rows), sealed[place : place + size])


def _read(source: Path, hidden: Collection[str]) -> Iterator[tuple[str, pa.ChunkedArray]]:
    """Yield the columns that may be read, some at a time."""
    there = header(source, str(source))
    names = [name for name in there if name not in hidden and there.count(name) == 1]
    at_once = 1
    while names:
        table = read_table(source, str(source), names[:at_once], as_text=True)
        yield from zip(names[:at_once], table.columns, strict=True)
        names = names[at_once:]
        at_once = max(1, _BYTES // (16 * len(table)))


def _ids(values: pa.ChunkedArray) -> bytes:
    written = as_array(values)
    if written is None:  # ids of several kinds, or long ones: as many as there are
        try:
            chosen = ids_of(listed(values))
        except RowsError:  # which the policy's own reading says
            return b""
    else:
        many = len(written) > _MANY
        written = np.where(np.strings.isdigit(written), np.strings.lstrip(written, b"0"), written)
        chosen = (written[np.argpartition(_spread(written), _MANY)[:_MANY]] if many else written).tolist()
    return b"".join(sorted(_short(each.lstrip(b"0") if each.isdigit() else each) for each in chosen))


def _spread(ids: NDArray[np.bytes_]) -> NDArray[np.uint64]:
    """Return a number for each id, independent of its value and of the array's width."""
    words = ids.astype(f"S{-(-ids.itemsize // 8) * 8}").view("<u8").reshape(len(ids), -1)
    found = np.zeros(len(ids), np.uint64)
    for word in words.T:
        found = np.where(word == 0, found, _mixed(found ^ word))
    return found


def _hashes(values: pa.ChunkedArray) -> NDArray[np.uint64] | None:
    """Return a number for each row's value, the same however the value is spelt and whatever else the column holds.

    None where the values count the rows, and for values that are neither numbers nor text.
    """
    import pyarrow as pa

    try:
        if (numbers := _numbers(values)) is not None:
            distinct, places = np.unique(numbers + 0.0, return_inverse=True)
            return None if _only_count(distinct, len(numbers)) else _of_numbers(distinct)[places]
        coded = values.combine_chunks().dictionary_encode(null_encoding="encode")
        found, are_numbers = np.empty(len(coded.dictionary), np.uint64), True
        for some in _pieces(len(found)):
            written = [b"" if value is None else value_of(value) for value in coded.dictionary[some].to_pylist()]
            found[some] = _joined(map(_of_value, written))
            are_numbers = are_numbers and all(each[:1] == b"\1" for each in written)
    except (pa.ArrowException, NotImplementedError):
        return None
    # Numbers that Arrow cannot read may also count the rows.
    if are_numbers and _only_count(np.array([*map(float, coded.dictionary.to_pylist())]), len(values)):
        return None
    return np.asarray(found[by_dlpack(coded.indices)])


def _numbers(values: pa.ChunkedArray) -> Floats | None:
    """Return a column of numbers, or of texts that `value_of` reads as numbers; None for others."""
    import pyarrow as pa
    from pyarrow import compute

    kind = values.type
    if values.null_count or not len(values):
        return None
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        pattern = f"^(?:{NUMERAL.pattern})$"
        if not all(compute.all(compute.match_substring_regex(some, pattern)).as_py() for some in values.iterchunks()):
            return None
        try:
            values = values.cast(pa.float64())
        except pa.ArrowInvalid:  # which Python reads, as 1. and +1
            return None
    elif not (pa.types.is_integer(kind) or pa.types.is_float32(kind) or pa.types.is_float64(kind)):
        return None
    numbers = np.concatenate([by_dlpack(each).astype(np.float64) for each in values.iterchunks()])
    return numbers if np.isfinite(numbers).all() else None


def _of_numbers(numbers: Floats) -> NDArray[np.uint64]:
    found, whole = np.empty(len(numbers), np.uint64), np.floor(numbers) == numbers
    for each, kind in ((whole, "<f8"), (~whole, "<f4")):
        for some in np.split(np.flatnonzero(each), range(_MANY, int(each.sum()), _MANY)):
            with np.errstate(over="ignore"):
                written, size = numbers[some].astype(kind).tobytes(), np.dtype(kind).itemsize
            found[some] = _joined(_short(b"\1" + written[at : at + size]) for at in range(0, len(written), size))
    return found


def _pieces(size: int) -> Iterator[slice]:
    return (slice(first, first + _MANY) for first in range(0, size, _MANY))


def _joined(digests: Iterable[bytes]) -> NDArray[np.uint64]:
    return np.frombuffer(b"".join(digests), "<u8").astype(np.uint64)


def _of_value(written: bytes) -> bytes:
    if written[:1] == b"\1":  # a number, perhaps of fewer digits in one of the files
        (number,) = struct.unpack("<d", written[1:])
        written = b"\1" + (written[1:] if number.is_integer() else np.float32(number).tobytes())
    return _short(written.removesuffix(b" 00:00:00"))  # a day, as a moment


def _only_count(distinct: Floats, rows: int) -> bool:
    if len(distinct) < rows:
        return False
    numbers = np.sort(distinct)
    return any(np.array_equal(numbers, np.arange(first, first + rows)) for first in (0, 1))


def _sketches(columns: Sequence[NDArray[np.uint64]], ids: Sequence[NDArray[np.uint64]]) -> Iterator[_Sketch]:
    """Yield digests of rows by all columns and by all but each; with ids, also without these and each."""
    whole = np.add.reduce(columns) if columns else np.zeros(0, np.uint64)
    yield _sketch(whole)
    yield from (_sketch(whole - column) for column in columns)
    yield from (_sketch(whole - own - column) for own in ids for column in columns if column is not own)


def _sketch(rows: NDArray[np.uint64]) -> _Sketch:
    # Mixed, so that neither the order nor the smallest digests depend on any value.
    digests = _mixed(rows)
    # Where rows differ, the smallest are among these, and the others need not be sorted.
    bound = np.uint64(min((8 * _ROWS << 64) // max(len(rows), 1), 2**64 - 1))
    for some in (digests[digests <= bound], digests):
        found, counts = np.unique(some, return_counts=True)
        once = found[counts == 1]
        if len(once) > _ROWS:
            return _Sketch((int(once[_ROWS - 1]) + 1) / 2**64, tuple(_each(once[:_ROWS].astype("<u8").tobytes())))
    return _Sketch(1.0, tuple(_each(once.astype("<u8").tobytes())))


def _mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return numbers spread over 64 bits, one to one: the end of SplitMix64 (Steele 2014)."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        values = (values ^ (values >> np.uint64(shift))) * np.uint64(factor)
    return values


def _short(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=8).digest()


def _each(digests: bytes) -> Iterator[bytes]:
    return (digests[place : place + 8] for place in range(0, len(digests), 8))
