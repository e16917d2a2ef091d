"""Roles of a table's columns: protected, label, dropped."""

from __future__ import annotations

from dataclasses import dataclass

from fairwall.tables.values import several


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
