"""Amounts of privacy loss: exact decimal arithmetic, and Renyi divergences with the privacy that their sum proves.

**Decimals.** No float64 is 0.1: ten charges of what 0.1 reads as come to a little more than 1, though whoever wrote 0.1
means a tenth of 1. So an amount is the shortest decimal that reads back as its float64, which Python's `repr`, JSON and
most languages print, and which is the decimal as written if that has at most 15 digits. It differs from the float64 by
at most half of its last bit, a relative 2^-53.

**Renyi divergences** of single mechanisms at one order (Mironov, CSF 2017). At an order a > 1 the divergences of
answered questions add up, and a sum that never exceeds a limit proves it for adaptively chosen questions too (a filter:
Feldman and Zrnic, NeurIPS 2021, Theorem 4.3; Lecuyer 2021). The order has to be fixed before the first question. With
the sum r, a series is (epsilon, delta)-private for

    epsilon = r + ln((a-1)/a) - (ln delta + ln a) / (a-1)        (Canonne, Kamath, Steinke 2020, Proposition 12).

* A mechanism of which only epsilon is known has at most the divergence of randomised response, which dominates
  it: ln(q (e^(a epsilon) + e^((1-a) epsilon))) / (a-1) with q = 1/(1 + e^epsilon).
* Laplace noise of scale 1/epsilon on a sensitivity of 1 has
  ln(a/(2a-1) e^((a-1) epsilon) + (a-1)/(2a-1) e^(-a epsilon)) / (a-1)      (Mironov, Proposition 6).

Both are at most epsilon, and at most a epsilon^2 / 2 (Bun and Steinke, TCC 2016, Proposition 3.3), which is used for
tiny epsilons: the formulas above lose their digits there.
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

import numpy as np

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


_SMALL = 1e-3
_ROUNDED_UP = 1 + 1e-6
"""Margin for float64 errors of the formulas; measured 1e-8, at orders of `_ORDERS` and epsilons from `_SMALL` on."""

_ORDERS = tuple(1 + math.exp2(k / 8) for k in range(-48, 160))


def response_divergence(epsilon: float, order: float) -> float:
    """Return an upper bound of the divergence of any epsilon-private mechanism; infinite for an infinite epsilon."""
    if math.isinf(epsilon):
        return math.inf
    log = float(np.logaddexp(order * epsilon, (1 - order) * epsilon) - np.logaddexp(0.0, epsilon))
    return _bounded(epsilon, order, log)


def laplace_divergence(epsilon: float, order: float) -> float:
    """Return an upper bound of the divergence of Laplace noise of scale 1/epsilon, for a sensitivity of 1."""
    if math.isinf(epsilon):
        return math.inf
    up = math.log(order / (2 * order - 1)) + (order - 1) * epsilon
    down = math.log((order - 1) / (2 * order - 1)) - order * epsilon
    return _bounded(epsilon, order, float(np.logaddexp(up, down)))


def _bounded(epsilon: float, order: float, log: float) -> float:
    always = min(epsilon, order * epsilon * epsilon / 2)
    return always if epsilon < _SMALL else min(always, log / (order - 1) * _ROUNDED_UP)


def renyi_epsilon(divergence: float, order: float, delta: float) -> float:
    """Return the epsilon, at least 0, that a divergence at an order proves at a delta above 0."""
    lost = math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)
    return max(0.0, divergence + lost)


@lru_cache(maxsize=256)
def filter_order(epsilon: float, delta: float) -> float:
    """Return the order at which (epsilon, delta) has room for most small losses, each nearly a constant times it.

    Epsilon is the whole budget's, finite and above 0, and delta above 0 and below 1.
    """

    def room(order: float) -> float:
        return (epsilon - renyi_epsilon(0.0, order, delta)) / order

    return max(_ORDERS, key=room)
