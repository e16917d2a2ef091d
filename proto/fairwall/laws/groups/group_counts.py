"""Counts of people by group: the effect of one person, and the noise that hides it.

**What is secret.** Each person is in one of k groups, of which nothing is public. Everything else that a by-group
metric looks at is public, or depends on labels, which are not protected: predictions, and hence how many people
decide which way. A *stratum* is a set of people whom all the questions of a request look at alike, such as those who
were selected, have the label 1, and so on. Strata are public and disjoint, and so is how many people each has.

**Neighbours** differ in one person's group, which may become any other one of the k (all protected attributes of the
person together). That person stays in one stratum s, so that in the table n[s, c] of counts two numbers move, by one
each, within one row: its l1 distance is 2. Groups may become empty.

**Noise.** Rows sum up to public totals, so the noise z of a row only needs to sum up to 0:

    P(z) ~ exp(-rate (|z_1| + ... + |z_k|)) over whole numbers with z_1 + ... + z_k = 0.

The normalisation does not depend on the table, since the difference of two tables is such a z. A neighbour's table
lies at most 2 further away, so a row costs 2 rate, exactly (attained by any z that moves away from both): with
rate = epsilon / 2 the whole table costs epsilon, as one person is in one row. This is the mechanism of Hardt and
Talwar (STOC 2010) for the norm whose unit ball is spanned by all e_c - e_c', on whole numbers. It is independent
Laplace noise of scale 2 / epsilon, conditioned on the public total: released tables add up by themselves.
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

from fairwall.arrays import Bools, Floats, Ints

SUM_STEP = 2.0**-16
"""Step to which scores are rounded before they are summed."""

PEOPLE_A_STRATUM = 50
"""Least mean number of people in the strata of several models' one table.

Models may be made to part people into strata of one each. A table of these would be everybody's group under randomised
response, right with a probability of 73% at epsilon 1: as private, by its epsilon, as any other answer, but not what an
audit is for. `benchmarks/by_group.py` has the best attack's result with this limit.
"""

DRAWN_MAX = 1 << 19
"""Most rows of one ball times (groups - 1) squared; beyond, noise takes seconds to draw."""

WORTH = 0.8
"""Largest variance ratio of rows to tables at which rows are used: a 10% smaller error."""

_RATE_BITS = 16

_FINE = 2.0**-9
"""Smallest rate at which the variance is summed; below, there would be too many numbers."""


def noise_rate(epsilon: float, distance: float = 2.0) -> float:
    """Return the rate of balanced noise on numbers whose l1 distance between neighbours is at most `distance`.

    `epsilon` is the whole cost, infinite for no noise; `distance` is a power of two. The rate has 16 significant bits,
    and is below epsilon / distance by 2^-16 to 2^-14 of it. So its multiples by whole numbers up to 2^37 are float64
    numbers, and float64's loss beyond is less than this margin.
    """
    if math.isinf(epsilon):
        return math.inf
    fraction, exponent = math.frexp(epsilon / distance)
    return math.ldexp(math.ceil(fraction * 2**_RATE_BITS) - 2, exponent - _RATE_BITS)


def balanced(generator: np.random.Generator, rate: float, rows: int, groups: int) -> Ints:
    """Simulate noise that sums up to 0, shape (rows, groups): for readers of a release, not for making one."""
    if math.isinf(rate) or groups == 1:
        return np.zeros((rows, groups), np.int64)
    drawn = list[Ints]()
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
    """Return the most strata for which models share one table.

    With S strata and the whole of epsilon, a sum over half of them has a variance of about 4 S / epsilon^2; a table for
    one of m models has few strata, and 1/m of epsilon. `people` is the number counted, `strata` that of each model's
    own table.
    """
    worth = sum(strata) * len(strata)
    return min(worth, max(people / PEOPLE_A_STRATUM, strata[0]))


@lru_cache(maxsize=64)
def noise_variance(rate: float, groups: int) -> float:
    """Return the variance of one number of noise that sums up to 0; parameters as of `marginal`."""
    if rate < _FINE:  # nearly continuous, so that it falls with the square of the rate
        return noise_variance(_FINE, groups) * (_FINE / rate) ** 2
    values, law = marginal(rate, groups)
    return float((values.astype(np.float64) ** 2 * law).sum())


def marginal(rate: float, groups: int) -> tuple[Ints, Floats]:
    """Return the distribution of one number of noise that sums up to 0.

    Given the sum, z_1 has the distribution e^(-rate |z_1|) times that of the others' sum at -z_1, a convolution. An
    infinite rate is no noise. The values are all whole numbers that are not practically impossible, ascending.
    """
    if math.isinf(rate) or groups == 1:
        return np.zeros(1, np.int64), np.ones(1)
    # The others' sum has a deviation of sqrt(2 groups) / rate at most.
    reach = math.ceil((45 + 6 * math.sqrt(2 * groups)) / rate)
    values = np.arange(-reach, reach + 1)
    weights = np.fft.ifftshift(np.exp(-rate * np.abs(values)))
    others = np.fft.ifft(np.fft.fft(weights / weights.sum()) ** (groups - 1)).real
    law = np.fft.fftshift(weights * np.maximum(others, 0.0))  # the distribution is even
    return values, law / law.sum()


def strata_of(indicators: Bools) -> tuple[Bools, NDArray[np.intp]]:
    """Return strata of people with the same answers to yes-or-no questions: `indicators` of shape (questions, people).

    The results are each stratum's answers, shape (strata, questions), and each person's stratum, shape (people,).
    """
    if not len(indicators):  # no questions: one stratum
        return np.zeros((1, 0), np.bool_), np.zeros(indicators.shape[1], np.intp)
    packed = np.packbits(indicators, axis=0)
    _, first, stratum = np.unique(packed, axis=1, return_index=True, return_inverse=True)
    return indicators.T[first], np.asarray(stratum).reshape(-1)
