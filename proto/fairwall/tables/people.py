"""Who a table is about: which rows are in the two groups, and what those people got."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from fairwall.tables.columns import Categories, Column, names_of
from fairwall.tables.errors import DataError
from fairwall.tables.roles import Roles

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class LeftOut:
    """Rows of a file that are about nobody in either group: how many, of how many, and why."""

    rows: int
    of: int
    why: str

    def __str__(self) -> str:
        """Say so in a line."""
        return f"{self.rows:,} of {self.of:,} rows were left out: {self.why}"


@dataclass(frozen=True)
class People:
    """The people of the two groups, in the order of the file.

    Attributes
    ----------
    kept : ndarray of bool
        (rows,): which rows of the file they are; the others are `left_out`, by reason.
    labels, protected : ndarray of uint8
        (people,): 1 is the favourable outcome, and the advantaged group.
    """

    kept: NDArray[np.bool_]
    labels: NDArray[np.uint8]
    protected: NDArray[np.uint8] = field(repr=False)
    left_out: tuple[LeftOut, ...] = ()


def check_roles(name: str, columns: Sequence[str], roles: Roles) -> None:
    """Make sure that a table has the columns that its roles name; DataError if not."""
    for column in (roles.protected, roles.label, *roles.drop):
        if column not in columns:
            raise DataError(f"{name}: no column {column!r}; its columns are {names_of(columns)}")
    if roles.protected == roles.label:
        raise DataError(f"{name}: column {roles.label!r} cannot be both protected and the label")


def missing(name: str, columns: pa.Table, column: str) -> NDArray[np.bool_]:
    """Tell which rows have no value in a column, shape (rows,)."""
    return Categories.of(Column.of(name, column, columns)).missing()


def select(name: str, columns: pa.Table, roles: Roles, imputed: Mapping[str, str] | None = None) -> People:
    """Choose the rows of the two groups.

    Parameters
    ----------
    name : str
        What an error calls the table.
    imputed : mapping of str to str or None
        For the protected column or the label, which of its values stands where there is none.

    Raises
    ------
    DataError
        If a column or value is not there, a group is empty, or a label is missing or never varies.
    """
    check_roles(name, columns.column_names, roles)
    groups, outcomes = (
        Categories.of(Column.of(name, column, columns)).filled((imputed or {}).get(column))
        for column in (roles.protected, roles.label)
    )
    advantaged, kept = _groups(groups, roles)
    labels = _labels(outcomes, roles, kept)
    return People(kept, labels, advantaged[kept].astype(np.uint8), tuple(_left_out(groups, kept, roles)))


def _left_out(groups: Categories, kept: NDArray[np.bool_], roles: Roles) -> Iterator[LeftOut]:
    """Say how many rows are in neither group, for want of a value and for another one."""
    missing = groups.missing() & ~kept
    for rows, why in (
        (missing, f"{roles.protected} is missing"),
        (~kept & ~missing, f"{roles.protected} is neither {roles.advantaged} nor {roles.disadvantaged}"),
    ):
        if rows.any():
            yield LeftOut(int(rows.sum()), len(kept), why)


def _groups(people: Categories, roles: Roles) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Tell which rows are advantaged, and which are in either group."""
    if roles.advantaged is None:
        raise DataError(f"{people.where} needs an advantaged value; {people.known()}")
    values = (roles.advantaged, *roles.also)
    advantaged: NDArray[np.bool_] = np.logical_or.reduce([people.having(value) for value in values])
    named = " or ".join(map(repr, values))
    if roles.disadvantaged is None:
        disadvantaged = ~(advantaged | people.missing())
    else:
        disadvantaged = people.having(roles.disadvantaged)
    if (advantaged & disadvantaged).any():
        raise DataError(f"{people.where} cannot have {named} both advantaged and disadvantaged")
    if not disadvantaged.any():
        raise DataError(f"{people.where} has no value but {named}; the disadvantaged group is empty")
    return advantaged, advantaged | disadvantaged


def _labels(outcomes: Categories, roles: Roles, kept: NDArray[np.bool_]) -> NDArray[np.uint8]:
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
