"""The rows of a request: ids in one order that both sides find, and a digest, as docs/protocol.md says in words."""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from fairwall.errors import UserError
from fairwall.tables.columns import by_dlpack
from fairwall.tables.values import NOTHING, is_missing

if TYPE_CHECKING:
    import pyarrow as pa

_AT_ONCE = 1 << 16
"""Number of rows processed together, which bounds the extra memory."""
_WIDEST = 64
"""Longest text, in bytes, that an array stores in each of its rows."""
_DIGITS = 17
"""Most digits of a number that, times 32, fits an integer of 64 bits."""

_WHOLE = re.compile(r"(-?)(0|[1-9][0-9]*)(?:\.0*)?")
"""A whole number, in text or as a float; a number with leading zeros is a text, and another id."""
NUMERAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number, in text."""


class RowsError(UserError):
    """Ids that identify no rows. The text is one line with the first bad row's number, from 1, and without an id."""


def ids_of(values: Iterable[object]) -> list[bytes]:
    """Return ids as compared: UTF-8, whole numbers as decimal digits whatever their type: 7.0 is 7, 0007 a text.

    RowsError for the first row without an id, or with the id of an earlier row.
    """
    seen: dict[bytes, int] = {}
    for row, value in enumerate(values, 1):
        text = id_text(value)
        if is_missing(text):
            raise RowsError(f"row {row} has no id")
        try:
            written = text.encode()
        except UnicodeEncodeError:
            raise RowsError(f"row {row} has an id that is not Unicode text") from None
        if (earlier := seen.setdefault(written, row)) != row:
            raise RowsError(f"row {row} has the id of row {earlier}; ids must be unique")
    return list(seen)


def id_text(value: object) -> str:
    """Return one id as `ids_of` writes it; a missing id is allowed."""
    text = _text(value)
    if whole := _WHOLE.fullmatch(text):
        sign, digits = whole.groups()
        return digits if digits == "0" else str(sign + digits)
    return text


def order_of(ids: Sequence[bytes]) -> NDArray[np.intp]:
    """Return the positions of the rows in the order of their ids, byte by byte."""
    return np.array(sorted(range(len(ids)), key=ids.__getitem__), np.intp)


def ordered_ids(values: Any) -> tuple[Sequence[bytes] | NDArray[np.bytes_], NDArray[np.intp]]:
    """Return ids written as by `ids_of`, and their order as by `order_of`; RowsError as of `ids_of`.

    Integers, and Arrow text, become an array: ten million ids take no object each, and seconds. Ids of any other array
    or sequence are written one by one.
    """
    written = as_array(values)
    if written is None:
        ids = ids_of(listed(values))
        return ids, order_of(ids)
    ranked = _ranked(written, _integers(values))
    order = np.argsort(ranked)
    if _first_twice(ranked, order) is not None and (twice := _first_twice(ranked, np.argsort(ranked, kind="stable"))):
        raise RowsError("row {} has the id of row {}; ids must be unique".format(*twice))
    if len(written) < len(values):
        raise RowsError(f"row {len(written) + 1} has no id")
    return written, order


def as_array(values: Any) -> NDArray[np.bytes_] | None:
    """Return ids as `ordered_ids` does, up to the first row without one; None if they must be written one by one."""
    if (numbers := _integers(values)) is not None:
        return numbers.astype(f"S{max(len(str(numbers.min())), len(str(numbers.max())))}")
    column = _arrow(values)
    return _of_text(column) if column is not None and len(column) and "string" in str(column.type) else None


def _integers(values: Any) -> NDArray[np.integer] | None:
    """Return the integers of an array, or of an Arrow column without nulls; None for other data."""
    if getattr(getattr(values, "dtype", None), "kind", "") in ("i", "u"):  # NumPy's, and those of pandas
        array = np.asarray(values)
        return array if array.dtype.kind in "iu" and array.ndim == 1 and array.size else None
    column = _arrow(values)
    if column is None or not len(column) or "int" not in str(column.type) or column.null_count:
        return None
    return np.concatenate([*map(by_dlpack, column.iterchunks())])


def _ranked(written: NDArray[np.bytes_], numbers: NDArray[np.integer] | None) -> NDArray[Any]:
    """Return numbers in the order of integer ids, which sort in a third of the time; for other ids the ids."""
    width = written.itemsize
    if numbers is None or width > _DIGITS or numbers.min() < 0:
        return written
    tens = 10 ** np.arange(width, dtype=np.int64)
    if numbers.min() >= tens[-1]:
        return numbers
    lengths = np.maximum(np.searchsorted(tens, numbers, side="right"), 1)
    # Padded to one number of digits; among ids that are equal then, the shorter comes first.
    return np.asarray(numbers.astype(np.int64) * tens[width - lengths] * 32 + lengths)


def _of_text(column: pa.ChunkedArray) -> NDArray[np.bytes_] | None:
    """Return texts as written by Arrow's functions: a Python value passed to one of them would import pandas."""
    import pyarrow as pa
    from pyarrow import compute

    longest = (compute.max(compute.binary_length(some)).as_py() for some in _pieces(column))
    width = max(filter(None, longest), default=1)
    if width > _WIDEST:
        return None
    written, start = np.zeros(len(column), f"S{width}"), 0
    for piece in _pieces(column):
        missing = compute.or_kleene(compute.is_null(piece), compute.match_substring_regex(piece, NOTHING))
        first = by_dlpack(compute.indices_nonzero(missing))[:1]
        some = piece.slice(0, *first.tolist()).cast(pa.string())
        if compute.any(compute.match_substring(some, "\0")).as_py():  # an array's texts end where zeros begin
            return None
        plain = compute.replace_substring_regex(some, f"^{_WHOLE.pattern}$", r"\1\2")
        plain = compute.replace_substring_regex(plain, "^-0$", "0")
        padded = compute.ascii_rpad(plain, width=width, padding="\0").cast(pa.binary(width))
        written[start : start + len(some)] = np.frombuffer(padded.buffers()[1], written.dtype, len(some))
        start += len(some)
        if first.size:
            break
    return written[:start]


def _pieces(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    for chunk in column.iterchunks():
        yield from (chunk.slice(start, _AT_ONCE) for start in range(0, len(chunk), _AT_ONCE))


def _first_twice(ids: NDArray[Any], order: NDArray[np.intp]) -> tuple[int, int] | None:
    """Return the first row with an earlier row's id, and that row, from 1; rows of one id are in row order."""
    found: list[tuple[int, int]] = []
    for start in range(0, len(order), _AT_ONCE):
        rows = order[start : start + _AT_ONCE + 1]
        ranked = ids[rows]
        again = np.flatnonzero(ranked[1:] == ranked[:-1])
        if again.size:
            place = again[rows[again + 1].argmin()]
            found.append((int(rows[place + 1]) + 1, int(rows[place]) + 1))
    return min(found, default=None)


def _arrow(values: Any) -> pa.ChunkedArray | None:
    """Return data as an Arrow column if they are integers, floats or text; None for other data."""
    streams = hasattr(values, "iterchunks")  # Arrow's own, or one that is read from a file each time
    if not (streams or hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__")):
        return None
    try:
        import pyarrow as pa
    except ImportError:
        return None
    try:
        column = values if streams else pa.chunked_array([values] if isinstance(values, pa.Array) else values)
    except (pa.ArrowException, NotImplementedError, OverflowError, TypeError, ValueError):  # objects of mixed types
        return None
    kind = pa.types
    plain = (kind.is_integer, kind.is_float32, kind.is_float64, kind.is_string, kind.is_large_string)
    return column if any(is_it(column.type) for is_it in plain) else None


def listed(values: Any) -> Iterable[object]:
    """Return the values of an array, an Index, a Series, an Arrow column or a sequence, as Python's own."""
    for name in ("tolist", "to_pylist", "to_list"):
        if hasattr(values, name):
            return cast(list[object], getattr(values, name)())
    return cast(Iterable[object], values)


def digest_of(
    ids: Sequence[bytes] | NDArray[np.bytes_], order: NDArray[np.intp], columns: Mapping[str, Any] | None = None
) -> bytes:
    """Return the SHA-256 of rows in an order: of ids as written by `ids_of` or `ordered_ids`, and of columns.

    Columns are hashed in the order of the mapping, each with one value a row, in the order of ``ids``.
    """
    named = {} if columns is None else columns
    cells = [_cells(values) for values in named.values()]
    digest = hashlib.sha256(struct.pack("<Q", len(named)) + b"".join(_prefixed(name.encode()) for name in named))
    short = isinstance(ids, np.ndarray) and all(len(cell) <= _WIDEST for distinct, _ in cells for cell in distinct)
    padded = [_padded(distinct) for distinct, _ in cells] if short else []
    for start in range(0, len(order), _AT_ONCE):
        rows = order[start : start + _AT_ONCE]
        if short and isinstance(ids, np.ndarray):
            others = [
                (each[codes[rows]], size[codes[rows]]) for (each, size), (_, codes) in zip(padded, cells, strict=True)
            ]
            digest.update(_joined([*_own(ids[rows]), *others]).data)
            continue
        own = ids[rows].tolist() if isinstance(ids, np.ndarray) else [ids[row] for row in rows]
        texts = [[distinct[code] for code in codes[rows].tolist()] for distinct, codes in cells]
        digest.update(b"".join(chain.from_iterable(zip(map(_prefixed, own), *texts, strict=True))))
    return digest.digest()


def _cells(values: Any) -> tuple[list[bytes], NDArray[np.integer]]:
    """Return a column's distinct values as hashed, and each row's index into these."""
    column = _arrow(values)
    if column is None:
        written = [_prefixed(value_of(value)) for value in listed(values)]
        return written, np.arange(len(written))
    coded = column.dictionary_encode(null_encoding="encode").combine_chunks()
    return [_prefixed(value_of(value)) for value in coded.dictionary.to_pylist()], by_dlpack(coded.indices)


_Bytes = tuple[NDArray[np.bytes_], NDArray[np.intp]]
"""Bytes of each row, and their number: an array does not tell zeros at the end of a value from padding."""


def _padded(cells: list[bytes]) -> _Bytes:
    return np.array(cells, np.bytes_), np.fromiter(map(len, cells), np.intp, len(cells))


def _own(ids: NDArray[np.bytes_]) -> tuple[_Bytes, _Bytes]:
    """Return each id's length, as hashed, and the id."""
    lengths = np.strings.str_len(ids).astype(np.intp)
    return (lengths.astype("<u8").view("S8"), np.full(len(ids), 8, np.intp)), (ids, lengths)


def _joined(parts: list[_Bytes]) -> NDArray[np.uint8]:
    """Return the parts of each row one after the other, row by row."""
    blocks = [part.view(np.uint8).reshape(len(part), -1) for part, _ in parts]
    there = [
        np.arange(block.shape[1]) < lengths[:, np.newaxis] for block, (_, lengths) in zip(blocks, parts, strict=True)
    ]
    return np.hstack(blocks)[np.hstack(there)]


def _prefixed(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


def value_of(value: object) -> bytes:
    """Return a public value as compared: nothing for none, a number as float64 behind a 1, text behind a 2."""
    text = _text(value)
    if is_missing(text):
        return b""
    if NUMERAL.fullmatch(text):
        return b"\1" + struct.pack("<d", float(text) + 0.0)  # 0 has one sign
    text = text.lower() if text.lower() in ("true", "false") else text
    return b"\2" + text.encode("utf-8", "surrogatepass")


def _text(value: object) -> str:
    """Return a value as a file would spell it, whatever library read it."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return ""
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, Integral):
        return str(int(value))
    if isinstance(value, Real):
        number = float(value)
        return str(int(number)) if number.is_integer() else repr(number)
    return str(value)
