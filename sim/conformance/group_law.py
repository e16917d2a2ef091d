r"""The distribution of noise on counts by group: rows that sum to 0, as `GroupTable` defines it.

For a row z of k numbers, P(z) is proportional to e^(-rate (|z_1| + ... + |z_k|)). Given z_1 .. z_{j-1}, z_j has the
distribution e^(-rate |z|) times that of the sum of the k - j others, at minus all before them. A draw between P(less)
and P(not more) makes each of the first k - 1 numbers of every row uniform, and independent of all others: see
`sim.conformance.survey`.

**Rows of a ball**, as in `GroupRows`, have P(z) proportional to e^(-rate T(z)), a mixture of uniformly drawn rows of
half l1 norm at most t reach: given z, t - T(z) is a geometric number of ratio e^-rate. With such a t drawn, t has the
probability e^(-rate t) times the number of rows of that size; a row's half norm s has one proportional to the number of
its rows; the number a of positive entries has C(k, a) C(s-1, a-1) C(s+k-a-1, k-a-1); their places are uniform; and all
ways to divide s among the positive entries are equally likely, as among the others. Each of these distributions makes
its number uniform, one after the other.
"""

from __future__ import annotations

import math

import numpy as np

from fairwall.arrays import Floats

Array = Floats

_COARSEST = 0.05
"""Smallest rate of noise that is tested exactly; other noise is tested on a grid of this part of its scale."""

_AT_ONCE = 1 << 20


def uniform(noise: Array, rate: float) -> Array:
    """Map whole-number noise, shape (rows, groups), to numbers uniform on [0, 1], shape (rows, groups - 1)."""
    rng = np.random.default_rng()  # not seeded: the server must not be able to predict it
    if rate < _COARSEST:
        noise, rate = np.floor(noise * (rate / _COARSEST) + rng.random(noise.shape)), _COARSEST
    rows, groups = noise.shape
    reach = math.ceil((45 + 6 * math.sqrt(2 * groups)) / rate)
    values = np.arange(-reach, reach + 1)
    own = np.exp(-rate * np.abs(values))
    transformed = np.fft.fft(np.fft.ifftshift(own / own.sum()))
    steps = np.clip(noise, -reach, reach).astype(np.int64)
    found = np.empty((rows, groups - 1))
    block = max(1, _AT_ONCE // len(values))
    for place in range(groups - 1):
        others = np.maximum(np.fft.fftshift(np.fft.ifft(transformed ** (groups - 1 - place)).real), 0.0)
        before = steps[:, :place].sum(axis=1)
        for start in range(0, rows, block):
            here = slice(start, start + block)
            at = np.clip(reach - before[here, np.newaxis] - values, 0, 2 * reach)
            likely = own * others[at]
            below = np.cumsum(likely, axis=1)
            each, drawn = np.arange(len(likely)), steps[here, place] + reach
            up = below[each, drawn]
            found[here, place] = (up - rng.random(len(up)) * likely[each, drawn]) / below[:, -1]
    return found


def uniform_of_ball(noise: Array, rate: float, reaches: Array) -> tuple[Array, float]:
    """Map a ball's whole-number noise, shape (rows, groups), whose rows sum to 0, to uniform numbers.

    `reaches` has shape (rows,). Return numbers of shape (rows, groups + 1), for the first groups - 1 entries of a row,
    its size and its number of positive entries; and the number for T.
    """
    rng = np.random.default_rng()
    rows, groups = noise.shape
    half = np.abs(noise).sum(axis=1) / 2
    size = int(np.ceil(half / reaches).max()) + int(rng.geometric(-math.expm1(-rate))) - 1
    found = np.empty((rows, groups + 1))
    of_all = _log_points(size * reaches, groups)
    up_to_size = [np.exp(_log_points(limit, groups) - of_all) for limit in (half - 1, half)]
    found[:, -2] = _between(rng, *up_to_size)
    some, s = np.arange(1.0, groups), half[:, np.newaxis]
    logs = _choose(groups, some) + _choose(s - 1, some - 1) + _choose(s + groups - some - 1, groups - some - 1)
    likely = np.where(s > 0, np.exp(logs - np.where(s > 0, logs.max(axis=1, keepdims=True), 0)), 1.0)
    up_to = np.cumsum(likely, axis=1) / likely.sum(axis=1, keepdims=True)
    positive = (noise > 0).sum(axis=1)
    at = np.maximum(positive - 1, 0)
    upper = np.take_along_axis(up_to, at[:, np.newaxis], 1)[:, 0]
    lower = upper - np.take_along_axis(likely, at[:, np.newaxis], 1)[:, 0] / likely.sum(axis=1)
    found[:, -1] = np.where(half > 0, _between(rng, lower, upper), rng.random(rows))
    gains, losses = half.copy(), half.copy()
    ups = positive.astype(np.float64)
    for place in range(groups - 1):
        z, downs = noise[:, place], groups - place - ups
        share = ups / (groups - place)
        gain, loss = np.maximum(z, 0.0), np.maximum(-z, 0.0)
        more = [_part(gains - 1 - x, gains - 1, ups - 1) for x in (gain, gain - 1)]
        less = [_part(losses - y + downs - 1, losses + downs - 1, downs - 1) for y in (loss + 1, loss)]
        over = 1 - share * _between(rng, *more)
        found[:, place] = np.where(z > 0, over, (1 - share) * _between(rng, *less))
        gains, losses, ups = gains - gain, losses - loss, ups - (z > 0)
    return found, _uniform_size(size, rate, reaches, groups, rng)


def _uniform_size(size: int, rate: float, reaches: Array, groups: int, rng: np.random.Generator) -> float:
    dimensions = (groups - 1) * len(reaches)
    reach = math.ceil((dimensions + 20 * math.sqrt(dimensions) + 60) / rate) + 20
    sizes = np.arange(max(size, reach) + 1.0)
    logs = -rate * sizes
    for limit, times in zip(*np.unique(reaches, return_counts=True), strict=True):
        logs += times * _log_points(limit * sizes, groups)
    likely = np.exp(logs - logs.max())
    below = np.cumsum(likely) / likely.sum()
    return float(below[size] - rng.random() * likely[size] / likely.sum())


def _part(of: Array, all_of: Array, chosen: Array) -> Array:
    whole = _choose(all_of, chosen)
    found: Array = np.exp(_choose(of, chosen) - np.where(np.isinf(whole), 0, whole))
    return found


def _between(rng: np.random.Generator, low: Array, high: Array) -> Array:
    drawn: Array = low + (high - low) * rng.random(np.shape(high))
    return drawn


def _log_points(limits: Array, groups: int) -> Array:
    """Return the logs of the numbers of rows with a half l1 norm of at most each limit; -inf for -1."""
    dimensions = groups - 1
    found: Array = np.full(limits.shape, -np.inf)
    for place in range(groups):
        each = 2 * _choose(dimensions, place) + _choose(limits - place + dimensions, dimensions)
        found = np.logaddexp(found, np.where(limits >= place, each, -np.inf))
    return found


def _choose(of: Array | float, chosen: Array | float) -> Array:
    """Return the log of a binomial coefficient, -inf if it is 0."""
    from scipy.special import betaln

    n, k = np.broadcast_arrays(np.asarray(of, np.float64), np.asarray(chosen, np.float64))
    inside = (k >= 0) & (k <= n)
    n, k = np.where(inside, n, 0), np.where(inside, k, 0)
    found: Array = np.where(inside, -betaln(n - k + 1, k + 1) - np.log1p(n), -np.inf)
    return found
