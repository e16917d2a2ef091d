"""A column as values of a type that can be encoded, and as categories; for the meaning of values see `values`."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bools, Floats
from fairwall.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = "?"
MOST_COLUMNS_LISTED = 40


@dataclass(frozen=True)
class TypedColumn:
    """Values of a type that can be encoded, and the beginning of an error about them."""

    where: str
    values: pa.ChunkedArray
    numeric: bool

    @classmethod
    def of(cls, name: str, column: str, columns: pa.Table) -> TypedColumn:
        """Return a column of a table as text, booleans or numbers."""
        import pyarrow as pa
        from pyarrow import types

        where = f"{name}: column {column!r}"
        values = plain(where, columns.column(column))
        kind = values.type
        if types.is_decimal(kind):
            values = values.cast(pa.float64())
        if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
            return cls(where, values, numeric=True)
        texts = (types.is_boolean, types.is_string, types.is_large_string)
        return cls(where, values if any(is_it(kind) for is_it in texts) else values.cast(pa.string()), numeric=False)

    def numbers(self) -> Floats:
        """Return the values of a numeric feature; DataError if some are missing."""
        numbers = self.floats()
        lacking = int((~np.isfinite(numbers)).sum())
        if lacking:
            raise DataError(
                f"{self.where} has no finite number in {lacking:,} of {len(numbers):,} rows; "
                "fill them in or put it in drop"
            )
        return numbers

    @property
    def commas(self) -> str:
        """The end of an error about text: decimal commas, and the remedy; empty if the text has none."""
        first = next((value.as_py() for value in self.values if value.is_valid), None)
        written = isinstance(first, str) and re.fullmatch(r"\s*-?[0-9.]*,[0-9]+\s*", first)
        return ": it has decimal commas, write points" if written else ""

    def floats(self) -> Floats:
        """Return the values of a numeric column, NaN for missing ones."""
        import pyarrow as pa

        values = self.values.cast(pa.float64(), safe=False).combine_chunks()
        return by_dlpack(values.fill_null(math.nan) if values.null_count else values)


@dataclass(frozen=True)
class Categories:
    """A feature's sorted distinct values, and for every row the index of its value."""

    values: tuple[str, ...]
    codes: NDArray[np.intp]

    @classmethod
    def of(cls, column: TypedColumn) -> Categories:
        """Return a column's categories; nulls are one more value."""
        encoded = column.values.combine_chunks().dictionary_encode(null_encoding="encode")
        distinct = encoded.dictionary.to_pylist()
        spelt = [MISSING if value is None else _spelt(value) for value in distinct]
        values = tuple(sorted(set(spelt)))
        rank = {value: code for code, value in enumerate(values)}
        codes = np.array([rank[value] for value in spelt], dtype=np.intp)
        return cls(values, codes[by_dlpack(encoded.indices)])


def plain(where: str, values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column's values without a dictionary or a view; DataError, which says where, for values without text."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_dictionary(values.type):
        chunks = [plain(where, pa.chunked_array([each.dictionary])).combine_chunks() for each in values.chunks]
        taken = [one.take(each.indices) for one, each in zip(chunks, values.chunks, strict=True)]
        return pa.chunked_array(taken) if taken else pa.chunked_array([], pa.string())
    kind = values.type
    if types.is_string_view(kind):
        return values.cast(pa.large_string())
    if types.is_float16(kind):
        return values.cast(pa.float32())
    numbers = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean)
    texts = (types.is_string, types.is_large_string, types.is_date, types.is_time, types.is_timestamp, types.is_null)
    if types.is_binary(kind) or types.is_large_binary(kind):
        with contextlib.suppress(pa.ArrowInvalid):
            return values.cast(pa.large_string())
        raise DataError(
            f"{where} holds bytes that are no text in UTF-8, perhaps Latin-1 (Windows-1252): save it in UTF-8"
        )
    if not any(is_it(kind) for is_it in (*numbers, *texts)):
        raise DataError(f"{where} holds neither UTF-8 text nor numbers but {kind}; write it as text, or leave it out")
    return values


def by_dlpack(values: pa.Array) -> NDArray[Any]:
    """Return numbers without nulls as an array; pyarrow's own way imports pandas, a third of a server's start."""
    numbers: NDArray[Any] = np.from_dlpack(values)
    return numbers


def chosen_rows(table: pa.Table, chosen: Bools) -> pa.Table:
    """Return the chosen rows of a table; a mask of NumPy's would import pandas."""
    import pyarrow as pa

    bits = pa.py_buffer(np.packbits(chosen, bitorder="little"))
    return table.filter(pa.Array.from_buffers(pa.bool_(), len(chosen), [None, bits]))


def _spelt(value: str | bool | int | float) -> str:
    """Return a value as a caller would write it: booleans in lower case, whole floats like integers."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and np.isnan(value):
        return MISSING
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def names_of(names: Sequence[str], most: int = MOST_COLUMNS_LISTED) -> str:
    """Return names on one line, the first ones if there are many."""
    beyond = len(names) - most
    return listed(names[:most]) + (f" and {beyond} more" if beyond > 0 else "")


def no_column(column: str, columns: Sequence[str]) -> str:
    """Return an error for a column that a table lacks, with the columns that it has."""
    near = [each for each in columns if each.strip().casefold() == column.strip().casefold()]
    hint = f"; {near[0]!r} is spelt otherwise, white space and capitals count" if near else ""
    return f"no column {column!r}; its columns are {names_of(columns)}{hint}"


def listed(words: Sequence[str]) -> str:
    """Return words joined on one line, whatever characters they contain."""
    return ", ".join(word if word.isprintable() else repr(word) for word in words)
