r"""Geometric numbers, exactly, from random bits, in a time that does not depend on the result.

P(G = k) = (1 - r) r^k for k = 0, 1, 2, ... with r = e^-rate. As r^k is a product over the binary digits of k, the
digits of G are independent: digit j is 1 with probability

    r^(2^j) / (1 + r^(2^j)) = 1 / (1 + e^(rate 2^j)).

Each digit is one coin. A coin of probability p is a uniform number U, and is 1 if U < p. The first 32 bits of both are
compared, for all coins at once, and where they agree, once in 2^32, more bits are, until they differ: there is no
rounding, whatever p is. From the digit on where the probability of any more is below 2^-64, one coin stands for all of
them, P(G >= 2^digits) = r^(2^digits); its addend has the law of G again, since G has no memory.
"""

from __future__ import annotations

import decimal
import math
import random
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Ints

RATE_MIN = 2.0**-50
"""Least rate: below it, sums of the numbers might not fit in 64 bits."""

_FIRST_BITS = 32
_MORE_BITS = 64
_RARE = 64 * math.log(2)


def geometric(rate: Fraction, size: int, bits: random.Random) -> Ints:
    """Return independent geometric numbers, shape (size,), P(k) = (1 - e^-rate) e^(-rate k).

    `rate` is at least `RATE_MIN`, or ValueError.
    """
    if rate < RATE_MIN:
        raise ValueError(f"the rate must be at least {RATE_MIN}")
    first = _first_bits(rate)
    uniform = np.frombuffer(bits.randbytes(4 * size * len(first)), dtype=np.uint32).reshape(size, len(first))
    coins = uniform < first
    for place in np.argwhere(uniform == first):
        row, digit = place.tolist()
        coins[row, digit] = _is_below(int(uniform[row, digit]), rate, digit, len(first) - 1, bits)
    drawn: Ints = coins @ (np.int64(1) << np.arange(len(first)))
    beyond = np.flatnonzero(coins[:, -1])
    if len(beyond):
        # The digits below are a geometric number's remainder, and stay; what is left of it counts in 2^digits.
        drawn[beyond] += geometric(rate * 2 ** (len(first) - 1), len(beyond), bits) << (len(first) - 1)
    return drawn


@lru_cache(maxsize=256)
def _first_bits(rate: Fraction) -> NDArray[np.uint32]:
    """Return the first bits of each coin's probability; the last coin stands for any further digit."""
    digits = math.ceil(math.log2(_RARE / min(rate, Fraction(_RARE))))
    return np.array([_bits(rate, digit, digits, _FIRST_BITS) for digit in range(digits + 1)], dtype=np.uint32)


def _is_below(uniform: int, rate: Fraction, digit: int, digits: int, bits: random.Random) -> bool:
    """Return whether a uniform number with these first bits is below a coin's probability."""
    known = _FIRST_BITS
    while uniform == (of_coin := _bits(rate, digit, digits, known)):
        uniform = uniform << _MORE_BITS | bits.getrandbits(_MORE_BITS)
        known += _MORE_BITS
    return uniform < of_coin


def _bits(rate: Fraction, digit: int, digits: int, count: int) -> int:
    """Return the first `count` bits of a coin's probability, as an integer: floor(2^count p)."""
    exponent = rate * 2**digit
    if exponent > count:  # e^-x is below 2^-x
        return 0
    precision = 30 + count // 3
    while True:
        with decimal.localcontext(prec=precision):
            power = (Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp()
            scaled = 2**count / (power if digit == digits else 1 + power)
            # Each of four roundings has a relative error below 10^(1 - precision); that of the exponent is multiplied
            # by the exponent.
            error = scaled * (4 + math.ceil(exponent)) * Decimal(10) ** (1 - precision)
            least, most = int(scaled - error), int(scaled + error)
        if least == most:
            return least
        precision *= 2
