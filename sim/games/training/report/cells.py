"""The cells of a run of the training game: what they are called, and what was measured of them."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.game import Line
from sim.report.estimates import Estimate
from sim.report.notation import setting, symbol

_HEADS = {"training.epsilon": "ε", "compliance.epsilon": "ε of A", "training.holds_protected": "holds A"}


def head(key: str) -> str:
    """Name a swept key."""
    return _HEADS.get(key) or symbol(key)


def accuracy_of(cell: Line) -> Estimate:
    """Give the mean accuracy, in [0, 1], with its interval where there are trials enough."""
    return Estimate(cell["accuracy"], cell["accuracy_low"], cell["accuracy_high"])


def gap_of(cell: Line) -> Estimate:
    """Give the mean risk difference, likewise."""
    return Estimate(cell["gap"], cell["gap_low"], cell["gap_high"])


def name_of(axes: Sequence[str], cell: Line) -> str:
    """Name a cell in a few words."""
    return ", ".join(
        setting(cell[key]) if isinstance(cell[key], str) else f"{head(key)} {setting(cell[key])}" for key in axes
    )
