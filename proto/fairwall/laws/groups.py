r"""Counts of people by group: what one person moves, and the noise that hides it.

**What is secret.** Each person is in one of k groups, of which nothing is public. Everything else that a by-group
metric looks at is public, or depends on labels, which are not protected: predictions, and hence how many people
decide which way. A *stratum* is a set of people whom all the questions of a request look at alike, such as those who
were selected, have the label 1, and so on. Strata are public and disjoint, and so is how many people each has.

**Neighbours** differ in one person's group, which may become any other one of the k (all protected attributes of the
person together). That person stays in one stratum s, so that in the table n[s, c] of counts two numbers move, by one
each, within one row: its l1 distance is 2. Groups may become empty.

**Noise.** Rows sum up to public totals, so the noise z of a row needs no more freedom than to sum up to 0:

    P(z) ~ exp(-rate (|z_1| + ... + |z_k|)) over whole numbers with z_1 + ... + z_k = 0.

The normalisation does not depend on the table, since the difference of two tables is such a z. A neighbour's table
lies 2 further away at most, so a row costs 2 rate, exactly (attained by any z that moves away from both): with
rate = epsilon / 2 the whole table costs epsilon, as one person is in one row. This is the mechanism of Hardt and
Talwar (STOC 2010) for the norm whose unit ball is spanned by all e_c - e_c', on whole numbers. Beside independent
Laplace noise of scale 2 / epsilon it is that noise, given the public total: released tables add up by themselves.
For k = 2 it is Laplace noise of scale 1 / epsilon on one count.

**Sums of scores** by group, of v - 1/2 in [-1/2, 1/2], move by at most 1/2 in two places. In whole multiples of a
step h, to which each person's v is rounded, that is an l1 distance of 1/h: rate = epsilon h.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SUM_STEP = 2.0**-16
"""What scores are rounded to before they are summed."""

PEOPLE_A_STRATUM = 50
"""At least so many have the strata of several models' one table, on average.

Models may be made to part people into strata of one each. A table of these would be everybody's group under randomised
response, and whoever buys it right with a probability of 73% at epsilon 1: as private, by its epsilon, as any other
answer, and not what an audit is for. `benchmarks/by_group.py` has what the best attack comes to as it is.
"""

DRAWN_MAX = 1 << 19
"""Rows of one ball times the square of how many groups there are but one: beyond, noise takes seconds to draw."""

WORTH = 0.8
"""Rows have to have so much less variance than tables: an error that is 10% smaller."""

_RATE_BITS = 16

_FINE = 2.0**-9
"""Of a smaller rate the variance is not added up: there would be too many numbers."""


def noise_rate(epsilon: float, distance: float = 2.0) -> float:
    """Return the rate of balanced noise on numbers whose l1 distance between neighbours is at most so much.

    Parameters
    ----------
    epsilon : what the numbers may cost in all; infinite for no noise.
    distance : a power of two.

    Returns
    -------
    float
        Has 16 significant bits, and is below epsilon / distance by 2^-16 to 2^-14 of it. So its multiples by whole
        numbers up to 2^37 are float64 numbers, and whatever float64 loses beyond is less than what was taken off.
    """
    if math.isinf(epsilon):
        return math.inf
    fraction, exponent = math.frexp(epsilon / distance)
    return math.ldexp(math.ceil(fraction * 2**_RATE_BITS) - 2, exponent - _RATE_BITS)


def balanced(generator: np.random.Generator, rate: float, rows: int, groups: int) -> NDArray[np.int64]:
    """Simulate noise that sums up to 0, shape (rows, groups): for whoever reads a release, not for making one."""
    if math.isinf(rate) or groups == 1:
        return np.zeros((rows, groups), np.int64)
    drawn = list[NDArray[np.int64]]()
    missing, kept = rows, 1.0
    while missing > 0:
        size = (int(1.2 * missing / kept) + 16, groups - 1)
        free = generator.geometric(-math.expm1(-rate), size) - generator.geometric(-math.expm1(-rate), size)
        last = -free.sum(axis=1)
        passed = generator.standard_exponential(len(last)) >= rate * np.abs(last)
        drawn.append(np.column_stack([free, last])[passed])
        missing -= len(drawn[-1])
        kept = max(float(passed.mean()), 0.01)
    return np.concatenate(drawn)[:rows]


def most_shared(people: int, strata: Sequence[int]) -> float:
    """Return up to how many strata models share one table.

    Of S strata and the whole of epsilon, a sum over half of them has a variance of 4 S / epsilon^2 about; a table of
    one of m models has few strata, and 1/m of epsilon.

    Parameters
    ----------
    people : how many are counted.
    strata : how many the table of each model has that has one of its own.
    """
    worth = sum(strata) * len(strata)
    return min(worth, max(people / PEOPLE_A_STRATUM, strata[0]))


@lru_cache(maxsize=64)
def noise_variance(rate: float, groups: int) -> float:
    """Return the variance of one number of noise that sums up to 0; parameters as of `marginal`."""
    if rate < _FINE:  # as good as of real numbers, so that it falls with the square of the rate
        return noise_variance(_FINE, groups) * (_FINE / rate) ** 2
    values, law = marginal(rate, groups)
    return float((values.astype(np.float64) ** 2 * law).sum())


def marginal(rate: float, groups: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the law of one number of noise that sums up to 0.

    Given the sum, z_1 has the law e^(-rate |z_1|) times that of the others' sum at -z_1, a convolution. A rate that is
    infinite is for no noise. The values are all whole numbers that are not next to impossible, in their order.
    """
    if math.isinf(rate) or groups == 1:
        return np.zeros(1, np.int64), np.ones(1)
    # The others' sum has a deviation of sqrt(2 groups) / rate at most.
    reach = math.ceil((45 + 6 * math.sqrt(2 * groups)) / rate)
    values = np.arange(-reach, reach + 1)
    weights = np.fft.ifftshift(np.exp(-rate * np.abs(values)))
    others = np.fft.ifft(np.fft.fft(weights / weights.sum()) ** (groups - 1)).real
    law = np.fft.fftshift(weights * np.maximum(others, 0.0))  # which is even
    return values, law / law.sum()


def strata_of(indicators: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Part people by a list of yes-or-no questions.

    Parameters
    ----------
    indicators : ndarray of bool, shape (questions, people)

    Returns
    -------
    answers : ndarray of bool, shape (strata, questions)
        What the people of each stratum have in common.
    stratum : ndarray of intp, shape (people,)
    """
    if not len(indicators):  # nothing is asked of anybody: all are alike
        return np.zeros((1, 0), np.bool_), np.zeros(indicators.shape[1], np.intp)
    packed = np.packbits(indicators, axis=0)
    _, first, stratum = np.unique(packed, axis=1, return_index=True, return_inverse=True)
    return indicators.T[first], np.asarray(stratum).reshape(-1)
