"""Exact arithmetic on amounts of privacy loss, as the decimal numbers that people write.

No float64 is 0.1: ten charges of what 0.1 reads as come to a little more than 1, though whoever wrote 0.1 means a tenth
of 1. So an amount is the shortest decimal that reads back as its float64, which Python's `repr`, JSON and most
languages print, and which is the decimal as written if that has at most 15 digits. It differs from the float64 by
at most half of its last bit, a relative 2^-53.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_FLOOR,
    Context,
    Decimal,
    DivisionByZero,
    Inexact,
    InvalidOperation,
    localcontext,
)
from fractions import Fraction
from functools import lru_cache

EXACT = Context(prec=4000, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[Inexact, InvalidOperation, DivisionByZero])
"""Context for sums, and for products of two: the longest have 1,300 digits; rounding raises instead."""

_FLOOR = Context(prec=50, rounding=ROUND_FLOOR)


@lru_cache(maxsize=4096)
def written(value: float) -> Decimal:
    """Return the shortest decimal that reads back as a float64; infinity for infinity."""
    return Decimal(repr(float(value)))


def least_scale(epsilon: float, spent: float = math.inf) -> float:
    """Return the least float64 noise scale whose cost is at most epsilon's decimal, for a sensitivity of 1.

    Noise of density exp(-|x| / scale) costs 1/scale exactly, and the nearest float64 to 1/epsilon may be too small.

    Epsilon is above 0, and infinite for no noise, of scale 0; `spent` is the scale of further noise whose cost is part
    of epsilon, infinite for none.
    """
    if math.isinf(epsilon):
        return 0.0
    left = Fraction(written(epsilon)) - (0 if math.isinf(spent) else 1 / Fraction(spent))
    scale = float(1 / left)
    while Fraction(scale) * left < 1:
        scale = math.nextafter(scale, math.inf)
    return scale


def at_most(value: Decimal) -> float:
    """Return the largest float64 whose decimal is at most a value."""
    nearest = float(value)
    return nearest if written(nearest) <= value else math.nextafter(nearest, -math.inf)


def at_least(value: Decimal) -> float:
    """Return the smallest float64 whose decimal is at least a value."""
    nearest = float(value)
    return nearest if written(nearest) >= value else math.nextafter(nearest, math.inf)


def total(amounts: Iterable[float]) -> float:
    """Return the smallest float64 that is at least the exact sum of amounts."""
    with localcontext(EXACT):
        return at_least(sum(map(written, amounts), Decimal(0)))


def part_of(whole: float, parts: int) -> float:
    """Return the largest float64 that fits `parts` times into a whole."""
    return at_most(_FLOOR.divide(written(whole), Decimal(parts)))
