"""The public encoding: from named columns and their roles to numbers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats
from fairwall.errors import DataError
from fairwall.tables.columns import Categories, TypedColumn
from fairwall.tables.people import Roles, select
from sim.datasets.rows import EncodedRows

if TYPE_CHECKING:
    import pyarrow as pa

MOST_CATEGORIES = 200

_BLOCK_ROWS = 2048
"""Rows written at a time: few enough to stay in the processor's cache, column by column."""


def encode(name: str, columns: pa.Table, roles: Roles, *, include_protected: bool = False) -> EncodedRows:
    """Select the rows of the two groups and encode their features, in the order of the file.

    A column that determines the groups by itself, like a copy of the protected one, is no feature. The protected
    column, if included, is the last feature, 1 for the advantaged and 0 for the disadvantaged.
    """
    import pyarrow as pa

    people = select(name, columns, roles)
    protected = people.protected
    if not people.kept.all():
        # Built from bits: for a NumPy array pyarrow would import pandas.
        bits = pa.py_buffer(np.packbits(people.kept, bitorder="little"))
        columns = columns.filter(pa.Array.from_buffers(pa.bool_(), len(people.kept), [None, bits]))

    withheld = {roles.protected, roles.label, *roles.drop}
    encoded = [
        feature
        for column in columns.column_names
        if column not in withheld
        and (feature := _feature(column, TypedColumn.of(name, column, columns), protected)) is not None
    ]
    if not encoded:
        raise DataError(
            f"{name}: no column is left as a feature besides {roles.protected}, {roles.label} and dropped ones"
        )
    if include_protected:
        encoded.append(_Feature((roles.protected,), 0, protected.astype(np.float64)))
    features = Encoded(tuple(encoded), len(protected))
    return EncodedRows(name, features, people.labels, protected, features.names, people.left_out)


@dataclass(frozen=True, eq=False)
class Encoded:
    """A table's features by column; rows are written out on request, since few are often used and memory is slow."""

    columns: tuple[_Feature, ...]
    rows: int

    @property
    def names(self) -> tuple[str, ...]:
        """The features' names."""
        return tuple(part for column in self.columns for part in column.names)

    def __getitem__(self, rows: NDArray[np.intp]) -> Floats:
        """Return rows, written out: shape (rows, features)."""
        features = np.zeros((len(rows), len(self.names)))
        for start in range(0, len(rows), _BLOCK_ROWS):
            self._write(rows[start : start + _BLOCK_ROWS], features[start : start + _BLOCK_ROWS])
        return features

    def _write(self, rows: NDArray[np.intp], features: Floats) -> None:
        places, start = np.arange(len(rows)), 0
        for column in self.columns:
            part = column.part if isinstance(column.part, int) else column.part[rows]
            value = column.value if isinstance(column.value, float) else column.value[rows]
            features[places, start + part] = value
            start += len(column.names)


@dataclass(frozen=True)
class _Feature:
    """An encoded column: the index of the part that is not 0 in each row, and that part's value."""

    names: tuple[str, ...]
    part: NDArray[np.intp] | int
    value: Floats | float


def _feature(name: str, column: TypedColumn, protected: Bytes) -> _Feature | None:
    """Return an encoded column, or None if it determines the groups."""
    if column.numeric:
        numbers = column.numbers()
        return None if _tells_apart(numbers, protected) else _Feature((name,), 0, _standardised(numbers))
    categories = Categories.of(column)
    if _tells_apart(categories.codes, protected):
        return None
    if len(categories.values) > MOST_CATEGORIES:
        raise DataError(
            f"{column.where} has {len(categories.values):,} different values, "
            f"more than the {MOST_CATEGORIES} that a category may have; put it in drop{column.commas}"
        )
    return _Feature(tuple(f"{name}={value}" for value in categories.values), categories.codes, 1.0)


def _tells_apart(values: Floats | NDArray[np.intp], protected: Bytes) -> bool:
    """Return whether some value is on all rows of one group and on no row of the other."""
    members = [protected == group for group in (0, 1)]
    return any(np.array_equal(values == values[np.argmax(group)], group) for group in members)


def _standardised(numbers: Floats) -> Floats:
    # Scaled first, so that no square overflows or vanishes.
    scaled = numbers / (np.abs(numbers).max() or 1.0)
    if scaled.min() == scaled.max():
        return np.zeros_like(scaled)
    centred = scaled - scaled.mean()
    return np.asarray(centred / centred.std())
