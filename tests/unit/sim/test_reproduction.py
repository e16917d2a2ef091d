"""The rule by which a printed figure is reproduced or not: over every order in which interval and region may lie."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations_with_replacement, product

import pytest

from sim.report.estimates import IntervalEstimate, Range
from sim.report.reproduction import (
    NOT_AS_DESCRIBED,
    NOT_REPRODUCED,
    REPRODUCED,
    UNDECIDED,
    judged,
    region,
)

Rule = Callable[[IntervalEstimate, Range, str | None], str]
LINE = range(6)
"""Places for four ends in every order, with every tie, and room between and around them."""


def by_points(low: int, high: int, printed: Range) -> str:
    """Judge by every point of the interval, halves of places included."""
    points = [low + step / 2 for step in range(2 * (high - low) + 1)]
    inside = [printed[0] <= point <= printed[1] for point in points]
    # An interval around the region has both ends outside and the region within.
    around = low <= printed[0] and printed[1] <= high
    if all(inside):
        return REPRODUCED
    return UNDECIDED if any(inside) or around else NOT_REPRODUCED


def faults(rule: Rule) -> list[str]:
    """Find where a rule judges otherwise than point by point."""
    found = []
    for (low, high), printed in product(combinations_with_replacement(LINE, 2), repeat=2):
        measured = IntervalEstimate((low + high) / 2, low, high)
        if rule(measured, printed, None) != by_points(low, high, printed):
            found.append(f"{(low, high)} beside {printed}")
        if rule(measured, printed, "the seed") != NOT_AS_DESCRIBED:
            found.append(f"{(low, high)} beside {printed}, not described")
    if rule(IntervalEstimate(2.0), (0, 5), None) != UNDECIDED:
        found.append("no interval")
    return found


def test_the_rule_judges_every_interval_as_its_points_do() -> None:
    assert faults(judged) == []


def meets(measured: IntervalEstimate, printed: Range, missing: str | None) -> str:
    """The twin that takes one point in common for enough."""
    verdict = judged(measured, printed, missing)
    return REPRODUCED if verdict == UNDECIDED else verdict


def open_ended(measured: IntervalEstimate, printed: Range, missing: str | None) -> str:
    """The twin that leaves the region's ends out."""
    return judged(measured, (printed[0] + 0.01, printed[1] - 0.01), missing)


def by_the_mean(measured: IntervalEstimate, printed: Range, missing: str | None) -> str:
    """The twin that knows no interval."""
    return judged(IntervalEstimate(measured.mean, measured.mean, measured.mean), printed, missing)


def forgiving(measured: IntervalEstimate, printed: Range, missing: str | None) -> str:
    """The twin that asks for no description where the numbers agree."""
    verdict = judged(measured, printed)
    return NOT_AS_DESCRIBED if missing and verdict != REPRODUCED else verdict


@pytest.mark.parametrize("twin", [meets, open_ended, by_the_mean, forgiving])
def test_a_broken_rule_is_caught(twin: Rule) -> None:
    assert faults(twin)


def test_a_region_reaches_as_far_as_the_standard_deviation_and_the_margin() -> None:
    assert region(84.0, None, 1.0) == (83.0, 85.0)
    assert region(84.0, 0.5, 1.0) == (82.5, 85.5)
    assert region(0.0, 0.25, 0.0) == (-0.25, 0.25)


def test_a_text_that_is_empty_misses_nothing() -> None:
    assert judged(IntervalEstimate(1.0, 0.5, 1.5), (0, 2), "") == REPRODUCED
