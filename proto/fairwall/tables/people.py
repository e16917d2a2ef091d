"""The people of a table: the roles of its columns, the rows in the two groups, and their labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairwall.arrays import Bools, Bytes
from fairwall.errors import DataError
from fairwall.tables.columns import no_column
from fairwall.tables.values import OTHERS, ColumnValues, several

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Roles:
    """The protected column and the label, and the meaning of their values.

    Attributes
    ----------
    protected, label : the two columns that are never features.
    advantaged, positive : the value of each that counts as 1; None if it is still to be given.
    disadvantaged, negative : the values of each that count as 0; None for the other one of two, see
        `fairwall.tables.values.ColumnValues.sides`.
    drop : further columns that are not features.
    also : further values of the protected column that count as 1.
    missing_values : texts that stand for no value, besides the usual ones.
    """

    protected: str
    advantaged: str | None
    disadvantaged: str | tuple[str, ...] | None
    label: str
    positive: str | None
    drop: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    negative: str | tuple[str, ...] | None = None
    missing_values: tuple[str, ...] = ()

    def named(self, column: str) -> tuple[str, ...]:
        """Return the named values of a column, the protected one or the label."""
        if column == self.protected:
            return (*several(self.advantaged), *self.also, *several(self.disadvantaged))
        return (*several(self.positive), *several(self.negative))


GROUPS, OUTCOMES = ("advantaged", "disadvantaged"), ("positive", "negative")
"""Names of the two sides of the protected column, and of the label."""


@dataclass(frozen=True)
class LeftOut:
    """Rows of a file that belong to neither group: their number, the number of all rows, and the reason."""

    rows: int
    of: int
    why: str

    def __str__(self) -> str:
        """Return the numbers and the reason in one line."""
        return f"{self.rows:,} of {self.of:,} rows were left out: {self.why}"


@dataclass(frozen=True)
class TwoGroups:
    """The people of the two groups, in the order of the file.

    Attributes
    ----------
    kept : (rows,), which rows of the file are theirs; the others are `left_out`, by reason.
    labels, protected : (people,), 1 for the favourable outcome, and for the advantaged group.
    told : the values on each side of the protected column and of the label, with their numbers of rows. Secret.
    """

    kept: Bools
    labels: Bytes
    protected: Bytes = field(repr=False)
    left_out: tuple[LeftOut, ...] = ()
    told: tuple[str, ...] = field(default=(), repr=False)


def check_roles(name: str, columns: Sequence[str], roles: Roles) -> None:
    """Raise DataError unless a table has the columns that its roles name."""
    for column in (roles.protected, roles.label, *roles.drop):
        if column not in columns:
            raise DataError(f"{name}: {no_column(column, columns)}")
    if roles.protected == roles.label:
        raise DataError(f"{name}: column {roles.label!r} cannot be both protected and the label")


def select(name: str, columns: pa.Table, roles: Roles, imputed: Mapping[str, str] | None = None) -> TwoGroups:
    """Return the people of the two groups; missing values may be `imputed`, by column.

    DataError if a column or value is missing, a group is empty, or a label is missing or never varies.
    """
    check_roles(name, columns.column_names, roles)
    groups, outcomes = (
        ColumnValues.of(
            name, column, columns, (*roles.named(column), *several((imputed or {}).get(column))), roles.missing_values
        ).filled((imputed or {}).get(column))
        for column in (roles.protected, roles.label)
    )
    if roles.advantaged is None:
        raise DataError(f"{groups.where} needs an advantaged value; {groups.known()}")
    if roles.positive is None:
        raise DataError(f"{outcomes.where} needs a positive value; {outcomes.known()}")
    advantaged, disadvantaged = groups.sides((roles.advantaged, *roles.also), several(roles.disadvantaged), GROUPS)
    kept = advantaged | disadvantaged
    positive, negative = outcomes.sides((roles.positive,), several(roles.negative), OUTCOMES)
    labels = _labels(outcomes, positive[kept], negative[kept], kept, roles)
    told = (groups.counted(advantaged, disadvantaged, GROUPS), outcomes.counted(positive, negative, OUTCOMES))
    left_out = tuple(_left_out(groups, kept, roles))
    return TwoGroups(kept, labels, advantaged[kept].astype(np.uint8), left_out, told)


def _left_out(groups: ColumnValues, kept: Bools, roles: Roles) -> Iterator[LeftOut]:
    """Yield the rows of neither group: those without a value, and those with another one."""
    missing, named = groups.missing() & ~kept, several(roles.disadvantaged)
    neither = "not known" if named == OTHERS else f"neither {roles.advantaged} nor {' or '.join(named)}"
    for rows, why in ((missing, "missing"), (~kept & ~missing, neither)):
        if rows.any():
            yield LeftOut(int(rows.sum()), len(kept), f"{roles.protected} is {why}")


def _labels(outcomes: ColumnValues, positive: Bools, negative: Bools, kept: Bools, roles: Roles) -> Bytes:
    """Return the labels of the kept rows; DataError unless each has one and both occur."""
    unknown = int(outcomes.missing()[kept].sum())
    if unknown:
        raise DataError(f"{outcomes.where} has no value in {unknown:,} rows; every row needs a label")
    if not (positive | negative).all():
        sides = f"neither {roles.positive} nor {' or '.join(several(roles.negative))}"
        raise DataError(f"{outcomes.where} is {sides} in some rows; {outcomes.known()}; take such rows out of the file")
    if positive.all() or not positive.any():
        which = "every" if positive.all() else "no"
        raise DataError(
            f"{outcomes.where} is {roles.positive!r} in {which} row of the two groups; a label needs both outcomes"
        )
    return positive.astype(np.uint8)
