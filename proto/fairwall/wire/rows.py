"""Which rows a request is about: ids in one order that both sides find, and a digest of them and of public columns.

docs/protocol.md has the same in words, for other languages.
"""

from __future__ import annotations

import hashlib
import re
import struct
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray

from fairwall.errors import UserError

# fmt: off
_MISSING = frozenset((
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN", "N/A", "NA", "NULL",
    "NaN", "n/a", "nan", "null",
))
# fmt: on
"""Texts that stand for no value: pyarrow's for CSV, so that whoever reads the same file otherwise finds the same."""

_WHOLE = re.compile(r"(-?)0*([0-9]+?)(?:\.0*)?")
_NUMERAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class RowsError(UserError):
    """Ids that name no rows. The text is one line that tells the first bad row's number, from 1, and no id."""


def ids_of(values: Iterable[object]) -> list[bytes]:
    """Write ids as they are compared: UTF-8, whole numbers as decimal digits whatever they were read as.

    Raises
    ------
    RowsError
        For the first row without an id, or with the id of an earlier row.
    """
    seen: dict[bytes, int] = {}
    for row, value in enumerate(values, 1):
        text = _text(value)
        if text in _MISSING:
            raise RowsError(f"row {row} has no id")
        if whole := _WHOLE.fullmatch(text):
            sign, digits = whole.groups()
            text = digits if digits == "0" else sign + digits
        try:
            written = text.encode()
        except UnicodeEncodeError:
            raise RowsError(f"row {row} has an id that is not Unicode text") from None
        if (earlier := seen.setdefault(written, row)) != row:
            raise RowsError(f"row {row} has the id of row {earlier}; ids must be unique")
    return list(seen)


def order_of(ids: Sequence[bytes]) -> NDArray[np.intp]:
    """Return the positions of the rows in the order of their ids, byte by byte."""
    return np.array(sorted(range(len(ids)), key=ids.__getitem__), np.intp)


def digest_of(
    ids: Sequence[bytes], order: NDArray[np.intp], columns: Mapping[str, Sequence[object]] | None = None
) -> bytes:
    """Return the SHA-256 of rows in an order: of their ids, and of some columns' values.

    Parameters
    ----------
    ids : sequence of bytes
        As `ids_of` writes them.
    order : ndarray of intp, shape (rows,)
    columns : mapping of str to sequence, optional
        By name, in the order in which they are hashed; each with one value a row, in the order of ``ids``.
    """
    named = {} if columns is None else columns
    written = [[value_of(value) for value in values] for values in named.values()]
    parts = [struct.pack("<Q", len(named)), *(_prefixed(name.encode()) for name in named)]
    for row in order:
        parts.append(_prefixed(ids[row]))
        parts += [_prefixed(values[row]) for values in written]
    return hashlib.sha256(b"".join(parts)).digest()


def _prefixed(content: bytes) -> bytes:
    return struct.pack("<Q", len(content)) + content


def value_of(value: object) -> bytes:
    """Write a public value as it is compared: nothing for none, a number as float64 behind a 1, text behind a 2."""
    text = _text(value)
    if text in _MISSING:
        return b""
    if _NUMERAL.fullmatch(text):
        return b"\1" + struct.pack("<d", float(text) + 0.0)  # 0 has one sign
    text = text.lower() if text.lower() in ("true", "false") else text
    return b"\2" + text.encode("utf-8", "surrogatepass")


def _text(value: object) -> str:
    """Spell a value as a file would, whatever library read it."""
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
