"""Which column of a table plays which part."""

from __future__ import annotations

from dataclasses import dataclass

from fairwall.tables.values import several


@dataclass(frozen=True)
class Roles:
    """The parts as they will be played.

    Attributes
    ----------
    protected, label : str
        The two columns that are never features.
    advantaged, positive : str or None
        The value of each that counts as 1; None says that a value is still owed.
    disadvantaged, negative : str, tuple of str or None
        The values of each that count as 0; None is the other one of two, see `fairwall.tables.values.Values.sides`.
    drop : tuple of str
        Further columns that are not features.
    also : tuple of str
        Further values of the protected column that count as 1.
    missing_values : tuple of str
        Texts that stand for no value, besides those that always do.
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
        """Return the values of a column that are named."""
        if column == self.protected:
            return (*several(self.advantaged), *self.also, *several(self.disadvantaged))
        return (*several(self.positive), *several(self.negative))
