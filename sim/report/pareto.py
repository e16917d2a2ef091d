"""The Pareto front: the points that no other point dominates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Point: TypeAlias = Sequence[float]
"""A point's coordinates; more is better in each, and infinite ones are allowed."""


def dominated(points: Sequence[Point], rivals: Sequence[Point] | None = None) -> list[bool]:
    """Return, for each point, whether another is at least as good in every coordinate and better in one; none is NaN.

    Equal points do not dominate one another. ``rivals`` are the points' values as others' rivals, by default the points
    themselves: the worst likely values there, with the best likely ones as points, give the clearly dominated points.
    """
    others = points if rivals is None else rivals
    return [
        any(_beats(rival, point) for place, rival in enumerate(others) if place != own)
        for own, point in enumerate(points)
    ]


def _beats(rival: Point, point: Point) -> bool:
    pairs = list(zip(rival, point, strict=True))
    return all(theirs >= ours for theirs, ours in pairs) and any(theirs > ours for theirs, ours in pairs)
