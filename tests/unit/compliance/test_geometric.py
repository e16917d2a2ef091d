"""Geometric numbers: every coin has its probability to the last bit, and the coins make the law."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy.stats

from compliance.noise import geometric as module
from compliance.noise.geometric import RATE_MIN, geometric

RATES = [
    Fraction(1, 3),
    Fraction(1),
    Fraction(5),
    Fraction(2, 10**6),
    Fraction(2) ** -50,
    Fraction(50),
    Fraction(10**6),
]
PRECISE = 400
FALSE_ALARM = 1e-7


def digits_of(rate: Fraction) -> int:
    return len(module._first_bits(rate)) - 1


def probabilities(rate: Fraction) -> list[mpmath.mpf]:
    """The law's probability of each digit by itself, and of any further one."""
    with mpmath.workprec(PRECISE):
        powers = [mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator * 2**j) for j in range(digits_of(rate) + 1)]
        return [*(power / (1 + power) for power in powers[:-1]), powers[-1]]


def test_every_coin_has_its_probability_to_the_last_bit() -> None:
    for rate in RATES:
        digits = digits_of(rate)
        for digit, probability in enumerate(probabilities(rate)):
            for count in (32, 96, 160, 288):
                with mpmath.workprec(PRECISE):
                    expected = int(mpmath.floor(mpmath.ldexp(probability, count)))
                assert module._bits(rate, digit, digits, count) == expected
        assert module._first_bits(rate).tolist() == [
            module._bits(rate, digit, digits, 32) for digit in range(digits + 1)
        ]
        assert float(probabilities(rate)[-1]) <= 2.0**-64 or digits == 0


def test_the_coins_make_the_law() -> None:
    # r^k is the product over the binary digits of k; all k below 2^digits, and the coin for what is beyond.
    rate = Fraction(6)
    each = [float(p) for p in probabilities(rate)]
    r = math.exp(-6)
    for k, fallen in enumerate(itertools.product((0, 1), repeat=digits_of(rate))):
        by_coins = math.prod(p if one else 1 - p for p, one in zip(each, reversed(fallen), strict=False))
        by_law = (1 - r) * r**k
        assert by_coins * (1 - each[-1]) == pytest.approx(by_law, rel=1e-9)


SYSTEM = random.SystemRandom()


class Given(random.Random):
    """Bits that are given: the first 32 of each coin, and those that are asked for one by one."""

    def __init__(self, uniform: list[list[int]], more: list[int]) -> None:
        self._first, self._further = iter(uniform), iter(more)

    def randbytes(self, _: int) -> bytes:
        return np.array(next(self._first), dtype=np.uint32).tobytes()

    def getrandbits(self, _: int, /) -> int:
        return next(self._further)


def drawn_with(uniform: list[list[int]], more: list[int], rate: Fraction) -> list[int]:
    """What is drawn from given bits."""
    return geometric(rate, 1, Given(uniform, more)).tolist()


def test_a_coin_falls_on_one_just_below_its_probability() -> None:
    rate = Fraction(1, 5)
    first = module._first_bits(rate).astype(int).tolist()
    digits = digits_of(rate)
    for digit in range(6):
        below = [2**32 - 1] * (digits + 1)
        below[digit] = first[digit] - 1
        assert drawn_with([below], [], rate) == [2**digit]
        below[digit] = first[digit] + 1
        assert drawn_with([below], [], rate) == [0]


def test_where_the_first_bits_agree_more_decide() -> None:
    rate = Fraction(1, 5)
    digits, digit = digits_of(rate), 3
    first = [2**32 - 1] * (digits + 1)
    first[digit] = module._bits(rate, digit, digits, 32)
    second = module._bits(rate, digit, digits, 96) % 2**64
    third = module._bits(rate, digit, digits, 160) % 2**64
    for more, expected in (
        ([second - 1], 8), ([second + 1], 0), ([second, third - 1], 8), ([second, third + 1], 0)
    ):  # fmt: skip
        assert drawn_with([first], more, rate) == [expected]


def test_what_is_beyond_the_digits_is_a_geometric_number_again() -> None:
    rate = Fraction(1, 5)
    digits = digits_of(rate)
    first = [2**32 - 1] * (digits + 1)
    first[0], first[-1] = 0, 0  # the probability's first bits are 0 too: the next 64 decide
    assert module._first_bits(rate)[-1] == 0
    beyond = rate * 2**digits
    assert digits_of(beyond) == 0
    # Its one coin falls on 1, which 2^digits more stand for, and then on 0.
    assert drawn_with([first, [0], [1]], [0, 0], rate) == [2 * 2**digits + 1]


@pytest.mark.parametrize("rate", [Fraction(1, 40), Fraction(2)], ids=str)
def test_geometric_numbers_follow_the_law(rate: Fraction) -> None:
    draws, r = 100_000, math.exp(-rate)
    last = int(math.log(1e-3) / math.log(r)) + 1
    counts = np.bincount(np.minimum(geometric(rate, draws, SYSTEM), last), minlength=last + 1)
    expected = [*((1 - r) * r**k for k in range(last)), r**last]
    assert scipy.stats.chisquare(counts, draws * np.array(expected)).pvalue > FALSE_ALARM


def test_a_rate_that_leaves_no_room_is_refused() -> None:
    with pytest.raises(ValueError, match="rate"):
        geometric(Fraction(RATE_MIN) / 2, 1, SYSTEM)


def test_the_same_bits_are_asked_for_whatever_is_drawn() -> None:
    asked = []

    class Counted(random.SystemRandom):
        def randbytes(self, n: int) -> bytes:
            asked.append(n)
            return super().randbytes(n)

    for _ in range(50):
        geometric(Fraction(1, 7), 20, Counted())
    assert set(asked) == {4 * 20 * (digits_of(Fraction(1, 7)) + 1)}
