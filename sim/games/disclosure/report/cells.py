"""The cells of a run of the disclosure game: what they are called, and what was measured of them."""

from __future__ import annotations

from collections.abc import Sequence

from sim.games.game import Line
from sim.report.estimates import FEWEST, Estimate
from sim.report.notation import MISSING, setting, symbol

EPSILON = "disclosure.epsilon"


def head(key: str) -> str:
    """Name a swept key."""
    return "ε" if key == EPSILON else symbol(key)


def name_of(axes: Sequence[str], cell: Line) -> str:
    """Name a cell in a few words: its mode, and what else is swept."""
    told = [
        setting(cell[key]) if isinstance(cell[key], str) and key != EPSILON else f"{head(key)} {setting(cell[key])}"
        for key in axes
        if key != "disclosure.mode"
    ]
    return ", ".join([cell["mode"], *told])


def advantage_of(cell: Line) -> Estimate:
    """Give the measured advantage, in [-1, 1], with its interval where there are trials enough."""
    return _estimate(cell, "advantage", cell["advantage"], cell["trials"])


def advantage_text(cell: Line) -> str:
    """Write the advantage; a dash where the secret was the same in all trials."""
    return MISSING if cell["advantage"] is None else advantage_of(cell).text(2)


def linked_of(cell: Line) -> Estimate:
    """Give the share of trials in which the record named was Alice's, in [0, 1]."""
    return _estimate(cell, "linked", cell["linked"] / cell["named"], cell["named"])


def bound_text(cell: Line) -> str:
    """Write the bound, with a star where it is none on this secret."""
    return f"{cell['bound']:.2f}{'' if cell['bound_applies'] else '*'}"


def _estimate(cell: Line, name: str, value: float, trials: int) -> Estimate:
    if trials < FEWEST:
        return Estimate(value)
    return Estimate(value, cell[f"{name}_low"], cell[f"{name}_high"])
