"""Bounds on the rounding error of exact answers, and detection of the answers' number format.

An exact gap is ``S1 / N1 - S0 / N0`` in float64, with sums ``S1`` and ``S0`` that are exact where every score is a
multiple of one power of two and the sums stay below 2^53 of it (`fairwall.laws.metrics.values.sums_over`). Three
roundings to nearest remain: one for each quotient and one for the difference. Each is off by at most half a unit in the
last place of its result, 2^(k-54) for a result below 2^k. Conversion to float32 adds half a unit in *its* last place,
2^(k-25); rounding to d decimals adds 10^-d / 2.
"""

from collections.abc import Sequence

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.metrics.answer_precision import DECIMALS_MAX, Precision

PRECISIONS: tuple[Precision, ...] = (*range(DECIMALS_MAX + 1), "float32", "float64")
"""The formats an answer may have where none is public. Every double is its own rounding to float64."""

# Scaling by 10^d rounds too, so a gap next to a tie may be rounded the wrong way.
_NEXT_TO_A_TIE = 1 + 2.0**-30


def error(precision: Precision, rate1: Floats, rate0: Floats, gap: Floats) -> Floats:
    """Return an upper bound on the distance of an answer from the true gap.

    precision : the answers' number format.
    rate1, rate0 : upper bounds for ``S1 / N1`` and ``S0 / N0``, (k,), at least 0.
    gap : upper bounds for the gap's absolute value, (k,).
    """
    total = _half_ulp(rate1, 53) + _half_ulp(rate0, 53) + _half_ulp(gap, 53)
    if precision == "float32":
        return total + _half_ulp(gap, 24)
    return total + 0.5 * 10.0**-precision * _NEXT_TO_A_TIE if isinstance(precision, int) else total


def possible(precisions: Sequence[Precision], answer: float) -> tuple[Precision, ...]:
    """Return the formats among `precisions` that can represent an answer."""
    return tuple(precision for precision in precisions if _fits(precision, answer))


def _fits(precision: Precision, answer: float) -> bool:
    if isinstance(precision, int):
        return round(answer, precision) == answer
    with np.errstate(over="ignore"):
        return precision == "float64" or float(np.float32(answer)) == answer


def _half_ulp(size: Floats, bits: int) -> Floats:
    # The margin is for the rounding of the bound itself.
    exponent = np.frexp(np.abs(size) * (1 + 2.0**-40))[1]
    half: Floats = np.where(size == 0, 0.0, np.ldexp(1.0, exponent - bits - 1))
    return half
