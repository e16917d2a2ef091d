"""A column as values of a kind that can be worked with, and as categories spelt as a caller would."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fairwall.tables.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = "?"
MOST_COLUMNS_LISTED = 40
MOST_VALUES_LISTED = 20


@dataclass(frozen=True)
class Column:
    """Values of a type that can be encoded, and the words an error about them starts with."""

    where: str
    values: pa.ChunkedArray
    numeric: bool

    @classmethod
    def of(cls, name: str, column: str, columns: pa.Table) -> Column:
        """Take a column out of its table as text, booleans or numbers."""
        import pyarrow as pa
        from pyarrow import types

        where = f"{name}: column {column!r}"
        values = columns.column(column)
        kind = values.type
        try:
            if types.is_dictionary(kind):
                kind = kind.value_type
                values = values.cast(kind)
            if types.is_integer(kind) or types.is_floating(kind):
                return cls(where, values, numeric=True)
            if types.is_decimal(kind):
                return cls(where, values.cast(pa.float64()), numeric=True)
            if types.is_boolean(kind) or types.is_string(kind) or types.is_large_string(kind):
                return cls(where, values, numeric=False)
            texts = (types.is_string_view, types.is_date, types.is_time, types.is_timestamp, types.is_null)
            if any(is_text(kind) for is_text in texts):
                return cls(where, values.cast(pa.string()), numeric=False)
        except pa.ArrowException:
            pass
        raise DataError(f"{where} holds neither UTF-8 text nor numbers but {kind}; put it in drop")

    def numbers(self) -> NDArray[np.float64]:
        """Return the values of a numeric feature, which must all be there."""
        numbers = self.floats()
        lacking = int((~np.isfinite(numbers)).sum())
        if lacking:
            raise DataError(
                f"{self.where} has no finite number in {lacking:,} of {len(numbers):,} rows; "
                "fill them in or put it in drop"
            )
        return numbers

    def floats(self) -> NDArray[np.float64]:
        """Return the values of a numeric column, NaN for those that are not there."""
        import pyarrow as pa

        values = self.values.cast(pa.float64(), safe=False).combine_chunks()
        return by_dlpack(values.fill_null(math.nan) if values.null_count else values)


@dataclass(frozen=True)
class Categories:
    """A column as its sorted distinct values, spelt as a caller would, and for every row which of them it has."""

    where: str
    values: tuple[str, ...]
    codes: NDArray[np.intp]
    types: frozenset[type]

    @classmethod
    def of(cls, column: Column) -> Categories:
        """Count nulls as one more value."""
        encoded = column.values.combine_chunks().dictionary_encode(null_encoding="encode")
        distinct = encoded.dictionary.to_pylist()
        spelt = [MISSING if value is None else _spelt(value) for value in distinct]
        values = tuple(sorted(set(spelt)))
        rank = {value: code for code, value in enumerate(values)}
        codes = np.array([rank[value] for value in spelt], dtype=np.intp)
        types = frozenset(type(value) for value in distinct if value is not None)
        return cls(column.where, values, codes[by_dlpack(encoded.indices)], types)

    def having(self, value: str) -> NDArray[np.bool_]:
        """Tell which rows have a value, and refuse one that no row has."""
        sought = value
        if self.types == {bool}:
            sought = {"1": "true", "0": "false"}.get(value, value.lower())
        elif not self.types & {str, bool}:
            try:
                sought = _spelt(float(value))
            except ValueError:
                sought = value
        if sought not in self.values:
            raise DataError(f"{self.where} has no value {value!r}; {self.known()}")
        return np.asarray(self.codes == self.values.index(sought))

    def missing(self) -> NDArray[np.bool_]:
        """Tell which rows have no value."""
        return self.having(MISSING) if MISSING in self.values else np.zeros(len(self.codes), dtype=np.bool_)

    def filled(self, value: str | None) -> Categories:
        """Put a value that occurs where there is none; nothing where it is None."""
        if value is None:
            return self
        code = int(self.codes[self.having(value)][0])
        return replace(self, codes=np.where(self.missing(), code, self.codes))

    def known(self) -> str:
        """List the values where they are categories, and only count them where they may be what the rows are about."""
        if len(self.values) > min(MOST_VALUES_LISTED, len(self.codes) // 2):
            return f"it has {len(self.values):,} different values in {len(self.codes):,} rows"
        return f"its values are {_listed(self.values)}"


def by_dlpack(values: pa.Array) -> NDArray[Any]:
    """Look at numbers without nulls; pyarrow's own way to NumPy imports pandas, a third of a server's start."""
    numbers: NDArray[Any] = np.from_dlpack(values)
    return numbers


def chosen_rows(table: pa.Table, chosen: NDArray[np.bool_]) -> pa.Table:
    """Take the rows of a table that are chosen; a mask of NumPy's would import pandas."""
    import pyarrow as pa

    bits = pa.py_buffer(np.packbits(chosen, bitorder="little"))
    return table.filter(pa.Array.from_buffers(pa.bool_(), len(chosen), [None, bits]))


def _spelt(value: str | bool | int | float) -> str:
    """Write a value as a caller would: booleans in lower case, whole floats like integers."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and np.isnan(value):
        return MISSING
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def names_of(names: Sequence[str], most: int = MOST_COLUMNS_LISTED) -> str:
    """List columns, or other names, on one line: the first of them where there are many."""
    beyond = len(names) - most
    return _listed(names[:most]) + (f" and {beyond} more" if beyond > 0 else "")


def _listed(words: Sequence[str]) -> str:
    """Join words on one line, whatever they contain."""
    return ", ".join(word if word.isprintable() else repr(word) for word in words)
