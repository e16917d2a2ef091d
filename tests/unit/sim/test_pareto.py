"""The Pareto front: over every small world of points, with ties, duplicates and infinite coordinates."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations_with_replacement, permutations, product

import pytest

from sim.report.pareto import Point, dominated

Front = Callable[[Sequence[Point]], list[bool]]
LEVELS = (-math.inf, 0.0, 1.0)
"""What a coordinate may be; an infinite epsilon is the worst one."""

WORLDS = [
    *(world for size in range(5) for world in combinations_with_replacement(list(product(LEVELS, repeat=2)), size)),
    *combinations_with_replacement(list(product(LEVELS, repeat=3)), 2),
    *combinations_with_replacement(list(product((0.0, 1.0), repeat=3)), 3),
]


def broken(front: Front) -> str:
    """Name the first law of fronts that one does not keep; an empty text where it keeps all."""
    for world in WORLDS:
        beaten = front(world)
        kept = [point for point, out in zip(world, beaten, strict=True) if not out]
        lost = [point for point, out in zip(world, beaten, strict=True) if out]
        if world and not kept:
            return f"nothing is left of {world}"
        if any(below(one, other) for one in kept for other in world):
            return f"{kept} has a point that another one of {world} beats"
        if not all(any(below(one, other) for other in kept) for one in lost):
            return f"{lost} has a point that none of {kept} beats"
        if any(front(order) != [out for _, out in turn] for order, turn in orders(world, beaten)):
            return f"the order of {world} counts"
    return ""


def below(one: Point, other: Point) -> bool:
    """Whether a point is another one pushed down: not the same, and nowhere above."""
    return tuple(one) != tuple(other) and tuple(map(min, one, other)) == tuple(one)


def orders(world: Sequence[Point], beaten: Sequence[bool]) -> list[tuple[list[Point], list[tuple[Point, bool]]]]:
    """Give a small world in every order, with what was said of each point."""
    if len(world) > 3:
        return []
    turns = [list(turn) for turn in permutations(zip(world, beaten, strict=True))]
    return [([point for point, _ in turn], turn) for turn in turns]


def test_a_front_keeps_the_laws_in_every_small_world() -> None:
    assert len(WORLDS) > 1000
    assert broken(dominated) == ""


def strict(points: Sequence[Point]) -> list[bool]:
    """The twin for which a tie in one coordinate saves a point."""
    return [any(all(a > b for a, b in zip(other, one, strict=True)) for other in points) for one in points]


def loose(points: Sequence[Point]) -> list[bool]:
    """The twin in which duplicates throw one another out."""
    return [
        any(i != j and all(a >= b for a, b in zip(other, one, strict=True)) for j, other in enumerate(points))
        for i, one in enumerate(points)
    ]


def finite(points: Sequence[Point]) -> list[bool]:
    """The twin that leaves out what is infinite."""
    return [any(below(one, other) for other in points) and all(math.isfinite(value) for value in one) for one in points]


def first_wins(points: Sequence[Point]) -> list[bool]:
    """The twin that keeps the first of duplicates alone."""
    return [
        any(below(one, other) or (j < i and one == other) for j, other in enumerate(points))
        for i, one in enumerate(points)
    ]


def of_sums(points: Sequence[Point]) -> list[bool]:
    """The twin that keeps what has the largest sum."""
    return [any(sum(other) > sum(one) for other in points) for one in points]


@pytest.mark.parametrize("twin", [strict, loose, finite, first_wins, of_sums])
def test_a_broken_front_is_caught(twin: Front) -> None:
    assert broken(twin)


def test_what_is_dominated_at_its_best_by_the_worst_of_another_is_dominated_by_any_values_between() -> None:
    boxes = list(combinations_with_replacement((0.0, 1.0, 2.0), 2))
    seen = 0
    for first, second in product(product(boxes, repeat=2), repeat=2):
        best = [tuple(high for _, high in box) for box in (first, second)]
        worst = [tuple(low for low, _ in box) for box in (first, second)]
        sure = dominated(best, worst)
        between = [tuple((low + high) / 2 for low, high in box) for box in (first, second)]
        for one, by_means in zip(sure, dominated(between), strict=True):
            seen += one
            assert by_means or not one
    assert seen > 50
    # The twin that lets the best of others stand against the worst of a point is sure of what is not so.
    worst, best = [(0.0, 0.0)] * 2, [(2.0, 2.0)] * 2
    assert dominated(worst, best) == [True, True]
    assert dominated(best, worst) == [False, False]
