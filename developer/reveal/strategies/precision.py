"""How far an answer may be from the gap it stands for, and how to tell from answers how they are written down.

An exact gap is ``S1 / N1 - S0 / N0`` in float64, with sums ``S1`` and ``S0`` that are exact where every score is a
multiple of one power of two and the sums stay below 2^53 of it (`fairwall.laws.values.sums_over`). What is left are
three roundings to nearest: one for each quotient and one for the difference. Each is off by at most half a unit in the
last place of its result, 2^(k-54) for a result below 2^k. Writing the gap down as a float32 adds half a unit in *its*
last place, 2^(k-25); rounding to d decimals adds 10^-d / 2.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.precision import DECIMALS_MAX, Precision

PRECISIONS: tuple[Precision, ...] = (*range(DECIMALS_MAX + 1), "float32", "float64")
"""What an answer's precision may be where nobody says. Every double is its own rounding to float64."""

# Scaling by 10^d rounds too, so that a gap may be rounded the wrong way where it lies next to a tie.
_NEXT_TO_A_TIE = 1 + 2.0**-30


def error(
    precision: Precision,
    rate1: NDArray[np.float64],
    rate0: NDArray[np.float64],
    gap: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Bound how far an answer is from the true gap.

    Parameters
    ----------
    precision : how answers are written down.
    rate1, rate0 : upper bounds for ``S1 / N1`` and ``S0 / N0``, (k,), at least 0.
    gap : upper bounds for the gap's size, (k,).
    """
    total = _half_ulp(rate1, 53) + _half_ulp(rate0, 53) + _half_ulp(gap, 53)
    if precision == "float32":
        return total + _half_ulp(gap, 24)
    return total + 0.5 * 10.0**-precision * _NEXT_TO_A_TIE if isinstance(precision, int) else total


def possible(precisions: Sequence[Precision], answer: float) -> tuple[Precision, ...]:
    """Give those of the precisions in which an answer can be written down."""
    return tuple(precision for precision in precisions if _fits(precision, answer))


def _fits(precision: Precision, answer: float) -> bool:
    if isinstance(precision, int):
        return round(answer, precision) == answer
    with np.errstate(over="ignore"):
        return precision == "float64" or float(np.float32(answer)) == answer


def _half_ulp(size: NDArray[np.float64], bits: int) -> NDArray[np.float64]:
    # The margin is for the rounding of the bound itself.
    exponent = np.frexp(np.abs(size) * (1 + 2.0**-40))[1]
    half: NDArray[np.float64] = np.where(size == 0, 0.0, np.ldexp(1.0, exponent - bits - 1))
    return half
