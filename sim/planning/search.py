"""Search for the smallest number at which a condition holds, rounded to a few digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import ROUND_CEILING, Decimal


def first(holds: Callable[[float], bool], start: float, least: float, most: float, close: float = 1.02) -> float | None:
    """Return a number at which a condition holds, at most ``close`` times one at which it fails; None if there is none.

    A condition is taken to hold above any such number. The search begins at ``start``, between ``least`` and ``most``.
    """
    low = high = start
    factor = 2.0
    if holds(start):
        while holds(low := max(high / factor, least)):
            high = low
            if low <= least:
                return high
            factor = min(factor * 2, 64.0)
    else:
        while not holds(high := min(low * factor, most)):
            if high >= most:
                return None
            low, factor = high, min(factor * 2, 64.0)
    while high / low > close:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if holds(middle) else (middle, high)
    for digits in (2, 3, 4):
        rounded = _upwards(high, digits)
        if rounded <= close * high and rounded <= most and holds(rounded):
            return rounded
    return high


def _upwards(x: float, digits: int) -> float:
    unit = Decimal(1).scaleb(math.floor(math.log10(x)) - digits + 1)
    return float((Decimal(x) / unit).to_integral_value(ROUND_CEILING) * unit)
