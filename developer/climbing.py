"""Hill climbing over plans: the search that the search strategies share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

Plan = TypeVar("Plan")

STEPS = (4.0, 2.0, 1.25)
"""Factors by which one number of a plan is multiplied or divided, coarsest first."""


def climbed(start: Plan, near: Callable[[Plan, float], Iterable[Plan]], score: Callable[[Plan], float]) -> Plan:
    """Return a plan that scores no lower than its neighbours, by moving to the best neighbour while the score rises.

    Plans are scored repeatedly, so `score` should cache.
    """
    for step in STEPS:
        while score(better := max(near(start, step), key=score)) > score(start):
            start = better
    return start
