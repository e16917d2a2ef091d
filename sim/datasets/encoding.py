"""The public encoding: from named columns and their roles to numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sim.datasets.roles import Roles
from sim.datasets.table import DataError, Table

if TYPE_CHECKING:
    import pyarrow as pa

MISSING = "?"
MOST_CATEGORIES = 200
MOST_COLUMNS_LISTED = 40
MOST_VALUES_LISTED = 20


def encode(name: str, columns: pa.Table, roles: Roles) -> Table:
    """Choose the rows of the two groups and encode their features, in the order of the file.

    A column that tells the groups apart by itself, like a copy of the protected one, is no feature.
    """
    import pyarrow as pa

    for column in (roles.protected, roles.label, *roles.drop):
        if column not in columns.column_names:
            raise DataError(f"{name}: no column {column!r}; its columns are {_columns(columns)}")
    if roles.protected == roles.label:
        raise DataError(f"{name}: column {roles.label!r} cannot be both protected and the label")

    advantaged, kept = _groups(_Categories.of(_Column.of(name, roles.protected, columns)), roles)
    labels = _labels(_Categories.of(_Column.of(name, roles.label, columns)), roles, kept)
    protected = advantaged[kept].astype(np.uint8)
    if not kept.all():
        columns = columns.filter(pa.array(kept))

    withheld = {roles.protected, roles.label, *roles.drop}
    encoded = [
        feature
        for column in columns.column_names
        if column not in withheld
        and (feature := _feature(column, _Column.of(name, column, columns), protected)) is not None
    ]
    if not encoded:
        raise DataError(f"{name}: no column is left as a feature; its columns are {_columns(columns)}")
    names = tuple(part for feature in encoded for part in feature.names)
    # One array, filled in place: for a large table the memory is most of the time.
    features = np.zeros((len(protected), len(names)))
    rows, start = np.arange(len(protected)), 0
    for feature in encoded:
        features[rows, start + feature.part] = feature.value
        start += len(feature.names)
    return Table(name, features, labels, protected, names)


@dataclass(frozen=True)
class _Column:
    """Values of a type that can be encoded, and the words an error about them starts with."""

    where: str
    values: pa.ChunkedArray
    numeric: bool

    @classmethod
    def of(cls, name: str, column: str, columns: pa.Table) -> _Column:
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
        import pyarrow as pa

        numbers: NDArray[np.float64] = self.values.cast(pa.float64(), safe=False).to_numpy()
        lacking = int((~np.isfinite(numbers)).sum())
        if lacking:
            raise DataError(
                f"{self.where} has no finite number in {lacking:,} of {len(numbers):,} rows; "
                "fill them in or put it in drop"
            )
        return numbers


@dataclass(frozen=True)
class _Categories:
    """A column as its sorted distinct values, spelt as a caller would, and for every row which of them it has."""

    where: str
    values: tuple[str, ...]
    codes: NDArray[np.intp]
    types: frozenset[type]

    @classmethod
    def of(cls, column: _Column) -> _Categories:
        """Count nulls as one more value."""
        encoded = column.values.dictionary_encode().combine_chunks()
        distinct = encoded.dictionary.to_pylist()
        spelt = [_spelt(value) for value in distinct]
        if encoded.null_count:
            spelt.append(MISSING)
        values = tuple(sorted(set(spelt)))
        rank = {value: code for code, value in enumerate(values)}
        codes = np.array([rank[value] for value in spelt], dtype=np.intp)
        return cls(
            column.where,
            values,
            codes[encoded.indices.fill_null(len(distinct)).to_numpy()],
            frozenset(map(type, distinct)),
        )

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

    def known(self) -> str:
        """List the values where they are categories, and only count them where they may be what the rows are about."""
        if len(self.values) > min(MOST_VALUES_LISTED, len(self.codes) // 2):
            return f"it has {len(self.values):,} different values in {len(self.codes):,} rows"
        return f"its values are {_listed(self.values)}"


def _groups(people: _Categories, roles: Roles) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which rows are advantaged, and which are in either group."""
    if roles.advantaged is None:
        raise DataError(f"{people.where} needs an advantaged value; {people.known()}")
    advantaged = people.having(roles.advantaged)
    if roles.disadvantaged is None:
        disadvantaged = ~(advantaged | people.missing())
    else:
        disadvantaged = people.having(roles.disadvantaged)
    if (advantaged & disadvantaged).any():
        raise DataError(f"{people.where} cannot have {roles.advantaged!r} both advantaged and disadvantaged")
    if not disadvantaged.any():
        raise DataError(f"{people.where} has no value but {roles.advantaged!r}; the disadvantaged group is empty")
    return advantaged, advantaged | disadvantaged


def _labels(outcomes: _Categories, roles: Roles, kept: NDArray[np.bool_]) -> NDArray[np.uint8]:
    if roles.positive is None:
        raise DataError(f"{outcomes.where} needs a positive value; {outcomes.known()}")
    labels = outcomes.having(roles.positive)[kept].astype(np.uint8)
    unknown = int(outcomes.missing()[kept].sum())
    if unknown:
        raise DataError(f"{outcomes.where} has no value in {unknown:,} rows; every row needs a label")
    if labels.min() == labels.max():
        which = "every" if labels[0] else "no"
        raise DataError(
            f"{outcomes.where} is {roles.positive!r} in {which} row of the two groups; a label needs both outcomes"
        )
    return labels


@dataclass(frozen=True)
class _Feature:
    """An encoded column: which of its parts is not 0 in a row, and what that part is."""

    names: tuple[str, ...]
    part: NDArray[np.intp] | int
    value: NDArray[np.float64] | float


def _feature(name: str, column: _Column, protected: NDArray[np.uint8]) -> _Feature | None:
    """Encode a column, unless it tells the groups apart."""
    if column.numeric:
        numbers = column.numbers()
        return None if _tells_apart(numbers, protected) else _Feature((name,), 0, _standardised(numbers))
    categories = _Categories.of(column)
    if _tells_apart(categories.codes, protected):
        return None
    if len(categories.values) > MOST_CATEGORIES:
        raise DataError(
            f"{column.where} has {len(categories.values):,} different values, "
            f"more than the {MOST_CATEGORIES} that a category may have; put it in drop"
        )
    return _Feature(tuple(f"{name}={value}" for value in categories.values), categories.codes, 1.0)


def _tells_apart(values: NDArray[np.float64] | NDArray[np.intp], protected: NDArray[np.uint8]) -> bool:
    """Whether some value is on all rows of one group and on no row of the other."""
    members = [protected == group for group in (0, 1)]
    return any(np.array_equal(values == values[np.argmax(group)], group) for group in members)


def _standardised(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    # Scaled first, so that no square overflows or vanishes.
    scaled = numbers / (np.abs(numbers).max() or 1.0)
    if scaled.min() == scaled.max():
        return np.zeros_like(scaled)
    centred = scaled - scaled.mean()
    return np.asarray(centred / centred.std())


def _spelt(value: str | bool | int | float) -> str:
    """Write a value as a caller would: booleans in lower case, whole floats like integers."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and np.isnan(value):
        return MISSING
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _columns(columns: pa.Table) -> str:
    names = columns.column_names
    beyond = len(names) - MOST_COLUMNS_LISTED
    return _listed(names[:MOST_COLUMNS_LISTED]) + (f" and {beyond} more" if beyond > 0 else "")


def _listed(words: Sequence[str]) -> str:
    """Join words on one line, whatever they contain."""
    return ", ".join(word if word.isprintable() else repr(word) for word in words)
