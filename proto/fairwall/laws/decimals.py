"""Amounts of privacy loss as the decimal numbers that people write, so that they add up exactly.

No float64 is 0.1: ten charges of what 0.1 reads as come to a little more than 1, though whoever wrote 0.1 means a tenth
of 1. So an amount is the shortest decimal that reads back as its float64, which is what Python's `repr`, JSON and most
languages print, and which is the decimal that was written wherever that has at most 15 digits. It is off the float64 by
half of its last bit at most, a relative 2^-53.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_FLOOR, Context, Decimal, DivisionByZero, Inexact, InvalidOperation
from functools import lru_cache

EXACT = Context(prec=4000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, DivisionByZero])
"""For sums and products of two: the longest have 1,300 digits, and what would be rounded raises instead."""

_FLOOR = Context(prec=50, rounding=ROUND_FLOOR)


@lru_cache(maxsize=4096)
def written(value: float) -> Decimal:
    """Return the shortest decimal that reads back as a float64; infinity for infinity."""
    return Decimal(repr(float(value)))


def at_most(value: Decimal) -> float:
    """Return the largest float64 whose decimal is no more than a value."""
    nearest = float(value)
    return nearest if written(nearest) <= value else math.nextafter(nearest, -math.inf)


def at_least(value: Decimal) -> float:
    """Return the smallest float64 whose decimal is no less than a value."""
    nearest = float(value)
    return nearest if written(nearest) >= value else math.nextafter(nearest, math.inf)


def part_of(whole: float, parts: int) -> float:
    """Return the largest float64 that fits into a whole so many times."""
    return at_most(_FLOOR.divide(written(whole), Decimal(parts)))
