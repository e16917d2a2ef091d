"""The cells of a run of the game of groups: what they are called, and what was measured of them."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.game import Line
from sim.report.estimates import PERCENT, Estimate, estimate_of
from sim.report.notation import setting, symbol

EPSILON = "groups.epsilon"


def head(key: str) -> str:
    """Name a swept key."""
    return "ε" if key == EPSILON else symbol(key)


def value_of(value: object) -> str:
    """Write what a swept key is set to: columns whose values go together, shares one after the other."""
    if not isinstance(value, list | tuple):
        return setting(value)
    return (" × " if isinstance(next(iter(value), None), str) else ", ").join(map(str, value))


def name_of(axes: Sequence[str], cell: Line) -> str:
    """Name a cell in a few words."""
    return ", ".join(f"{head(key)} {value_of(cell[key])}" for key in axes) or "the run"


def leakage_of(cell: Line) -> Estimate:
    """Give the mean leakage, in percent, with its interval where there are trials enough."""
    return estimate_of(cell["leakage"], cell["leakage_sd"], cell["trials"], PERCENT)


def right_of(cell: Line, group: str) -> Estimate | None:
    """Give how many of a group are named right, in percent; None where nobody was ever in it."""
    found = cell["right"][group]
    return estimate_of(found["mean"], found["sd"], found["trials"], PERCENT) if found["trials"] else None


_SETS = ("groups.source", "groups.columns")
"""The keys that say which groups there are."""


def set_of(axes: Sequence[str], cell: Line) -> str:
    """Name the set of groups of a cell, where several are swept."""
    return ", ".join(value_of(cell[key]) for key in _SETS if key in axes)


def attack_of(axes: Sequence[str], cell: Line) -> str:
    """Name what else tells a cell from others: mostly how its developer attacks."""
    return ", ".join(f"{head(key)} {value_of(cell[key])}" for key in axes if key not in (EPSILON, *_SETS))
