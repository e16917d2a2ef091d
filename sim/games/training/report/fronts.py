"""Which cells of a run no other cell beats: in accuracy, in risk difference, and in what is promised."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sim.games.game import Line
from sim.games.training.report.cells import GROUPS, accuracy_of, distance_of, name_of, of_group, promised_of
from sim.report.estimates import Estimate
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
    """Find which cells are dominated, among those that have the accuracy.

    Parameters
    ----------
    axes : sequence of str
        The swept keys.
    cells : sequence of mapping
        Of models.
    of : str
        One of `OF`.
    private : bool
        Whether what is promised counts, too.
    """
    there = [(cell, found) for cell in cells if (found := _accuracy(cell, of)) is not None]
    gaps = [distance_of(cell) for cell, _ in there]
    epsilons = [promised_of(cell) for cell, _ in there]
    costs = [-epsilon if private else 0.0 for epsilon in epsilons]
    rows = [(found, gap, cost) for (_, found), gap, cost in zip(there, gaps, costs, strict=True)]
    means = dominated([(found.mean, -gap.mean, cost) for found, gap, cost in rows])
    best = [(_end(found, "high"), -_end(gap, "low"), cost) for found, gap, cost in rows]
    worst = [(_end(found, "low"), -_end(gap, "high"), cost) for found, gap, cost in rows]
    known = [found.low is not None for found, _, _ in rows]
    # Without intervals a mean is anywhere.
    clear = dominated(best, [end if sure else _NOWHERE for end, sure in zip(worst, known, strict=True)])
    return [
        Placed(cell, name_of(axes, cell), found, gap, epsilon, beaten, beaten and surely and sure)
        for (cell, found), gap, epsilon, beaten, surely, sure in zip(
            there, gaps, epsilons, means, clear, known, strict=True
        )
    ]


_NOWHERE = (float("-inf"),) * 3


def _accuracy(cell: Line, of: str) -> Estimate | None:
    return accuracy_of(cell) if of == OF[0] else of_group(cell, "accuracies", GROUPS.index(of))


def _end(found: Estimate, end: str) -> float:
    value: float | None = getattr(found, end)
    return found.mean if value is None else value
