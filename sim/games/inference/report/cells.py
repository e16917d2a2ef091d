"""The cells of a run of the inference game: their names, and their lines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sim.games.inference.report.paper_comparison import one_a_split
from sim.report.cells import Trial
from sim.report.estimates import Estimate
from sim.report.notation import MISSING, as_float, setting, symbol
from sim.scenarios.sweep import Sweep

Cell = Mapping[str, Any]
"""Of a summary: one attack on one combination of swept values."""

_PRIVATE = "developer.training_epsilon"


def swept_texts(keys: Sequence[str], cell: Cell) -> list[str]:
    """Write a cell's swept values; a training budget that its defence ignores is left out."""
    return [MISSING if key == _PRIVATE and "dp-sgd" not in cell["defence"] else setting(cell[key]) for key in keys]


def name_of(keys: Sequence[str], cell: Cell) -> str:
    """Name a cell in a few words."""
    told = dict(zip(keys, swept_texts(keys, cell), strict=True))
    words = [
        text if key == "developer.defence" else f"{symbol(key)} {text}" for key, text in told.items() if text != MISSING
    ]
    return ", ".join(words) or str(cell["defence"])


def distinct(sweep: Sweep, summary: Sequence[Cell]) -> list[Cell]:
    """Keep one line of the summary for each combination of swept values: what is said of the victims is in all."""
    kept: dict[tuple[str, ...], Cell] = {}
    for cell in summary:
        kept.setdefault(tuple(setting(cell[key]) for key in sweep.scenario.axes), cell)
    return list(kept.values())


def lines_of(sweep: Sweep, cell: Cell, trials: Sequence[Trial]) -> list[Trial]:
    """Find a cell's lines, one a split."""
    return one_a_split([trial for trial in trials if all(trial[key] == cell[key] for key in sweep.scenario.axes)])


def has_intervals(summary: Sequence[Cell]) -> bool:
    """Say whether any cell was played on splits enough for intervals."""
    return any(cell["accuracy_b_low"] is not None for cell in summary)


def accuracy_of(cell: Cell) -> Estimate:
    """Give balanced accuracy at guessing b, in percent."""
    return Estimate(cell["accuracy_b"], cell["accuracy_b_low"], cell["accuracy_b_high"])


def family_of(cell: Cell) -> Estimate:
    """Give the same with the interval that holds for all attacks at once."""
    return Estimate(cell["accuracy_b"], cell["family_low"], cell["family_high"])


def advantage_of(cell: Cell) -> Estimate:
    """Give the advantage, in [0, 1]."""
    return Estimate(cell["advantage"], cell["advantage_low"], cell["advantage_high"])


def swept_number(value: object) -> float | None:
    """Give a swept value as a number; None where it is none."""
    place = as_float(value)
    return None if math.isnan(place) else place


def swept_axis(keys: Sequence[str], summary: Sequence[Cell]) -> str | None:
    """Find a swept number that takes several values whatever the others are."""
    for axis in keys:
        places: dict[tuple[str, ...], set[float | None]] = {}
        for cell in summary:
            rest = tuple(setting(cell[key]) for key in keys if key != axis)
            places.setdefault(rest, set()).add(swept_number(cell[axis]))
        if all(len(values) > 2 and None not in values for values in places.values()):
            return axis
    return None


def defence_of(keys: Sequence[str], summary: Sequence[Cell]) -> list[str]:
    """Name each cell by all that is swept but for the number along which figures are drawn: mostly its defence."""
    axis = swept_axis(keys, summary)
    return [name_of([key for key in keys if key != axis], cell) for cell in summary]
