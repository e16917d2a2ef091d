"""A climb to the plan that scores best among those near it: what searches for questions have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Plan = TypeVar("Plan")

STEPS = (4.0, 2.0, 1.25)
"""By what a plan's number is multiplied or divided: coarsely first."""


def climbed(start: Plan, near: Callable[[Plan, float], Iterable[Plan]], score: Callable[[Plan], float]) -> Plan:
    """Go on to the best of the plans that are near by a step, while that is better.

    Plans are scored again and again: the score remembers what it said.
    """
    for step in STEPS:
        while score(better := max(near(start, step), key=score)) > score(start):
            start = better
    return start
