"""Which column of a table plays which part."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Roles:
    """The parts as they will be played.

    Attributes
    ----------
    protected, label : str
        The two columns that are never features.
    advantaged, positive : str or None
        The value of each that counts as 1; None says that a value is still owed.
    disadvantaged : str or None
        The value of the protected column that counts as 0; None is every other value.
    drop : tuple of str
        Further columns that are not features.
    also : tuple of str
        Further values of the protected column that count as 1.
    """

    protected: str
    advantaged: str | None
    disadvantaged: str | None
    label: str
    positive: str | None
    drop: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
