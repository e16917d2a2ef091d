"""Which points no other one beats: the Pareto front."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Point: TypeAlias = Sequence[float]
"""Its coordinates, of each of which more is better; infinite ones are allowed."""


def dominated(points: Sequence[Point], rivals: Sequence[Point] | None = None) -> list[bool]:
    """Say of each point whether another is at least as good in every coordinate, and better in one; none is NaN.

    Two points that are the same do not dominate one another.

    Parameters
    ----------
    rivals : what the points are when they stand against others, one for each; the points themselves, if left out. The
        worst that others may be against the best that a point may be finds what is clearly dominated.
    """
    others = points if rivals is None else rivals
    return [
        any(_beats(rival, point) for place, rival in enumerate(others) if place != own)
        for own, point in enumerate(points)
    ]


def _beats(rival: Point, point: Point) -> bool:
    pairs = list(zip(rival, point, strict=True))
    return all(theirs >= ours for theirs, ours in pairs) and any(theirs > ours for theirs, ours in pairs)
