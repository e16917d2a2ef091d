"""Which cells of a run no other cell beats: in accuracy, in risk difference, and in what is promised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sim.games.game import Line
from sim.games.training.report.cells import GROUPS, accuracy_of, distance_of, name_of, of_group, promised_of
from sim.report.estimates import Estimate, Range
from sim.report.pareto import dominated

OF = ("overall", *GROUPS)
"""Whose accuracy: everybody's, or a group's."""

MEANS = (
    "Dominated: another cell's means are at least as good in {what}, and better in one of them. Means are compared, "
    "and a few trials more may change that. Where the intervals settle it, so that the worst ends of another cell's "
    "95% intervals are at least as good as the best ends of this one's, a cell is clearly dominated."
)
"""What a page says of it, ``what`` being the coordinates."""


@dataclass(frozen=True)
class Placed:
    """A cell, and whether others beat it.

    Attributes
    ----------
    accuracy : everybody's, or a group's.
    distance : the absolute risk difference.
    epsilon : promised to records.
    dominated : by the means of another cell.
    clear : whatever the means are within the intervals.
    """

    cell: Line
    name: str
    accuracy: Estimate
    distance: Estimate
    epsilon: float
    dominated: bool
    clear: bool

    @property
    def verdict(self) -> str:
        """Say it in a word or two."""
        return "on the front" if not self.dominated else "clearly dominated" if self.clear else "dominated"


def placed(axes: Sequence[str], cells: Sequence[Line], of: str = OF[0], *, private: bool) -> list[Placed]:
    """Find which cells of models are dominated, among those that have the accuracy that is asked for: one of `OF`.

    ``private`` says whether what is promised counts, too.
    """
    there = [(cell, found) for cell in cells if (found := _accuracy(cell, of)) is not None]
    rows = [(found, distance_of(cell), -promised_of(cell) if private else 0.0) for cell, found in there]
    means = dominated([(found.mean, -gap.mean, cost) for found, gap, cost in rows])
    best = [(_ends(found)[1], -_ends(gap)[0], cost) for found, gap, cost in rows]
    worst = [(_ends(found)[0], -_ends(gap)[1], cost) for found, gap, cost in rows]
    clear = dominated(best, worst)
    return [
        Placed(cell, name_of(axes, cell), found, gap, promised_of(cell), beaten, beaten and surely)
        for (cell, _), (found, gap, _), beaten, surely in zip(there, rows, means, clear, strict=True)
    ]


def _accuracy(cell: Line, of: str) -> Estimate | None:
    return accuracy_of(cell) if of == OF[0] else of_group(cell, "accuracies", GROUPS.index(of))


def _ends(found: Estimate) -> Range:
    """Give the interval; without one, a mean is anywhere."""
    if found.low is None or found.high is None:
        return -math.inf, math.inf
    return found.low, found.high
