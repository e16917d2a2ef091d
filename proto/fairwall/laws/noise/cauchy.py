"""Cauchy noise that spends the whole of epsilon: the best smoothness and scale.

**Privacy.** Let one query's noise be Cauchy with scale S/alpha, where S is beta-smooth, and let its share of
the budget be e = epsilon/m. Between neighbours with S <= S' = S exp(b), 0 <= b <= beta, whose gaps differ by d, the
loss l has (`fairwall.laws.mechanisms.calibration`)

    cosh l = 1 + (d^2 + (S-S')^2 / alpha^2) / (2 S S' / alpha^2) = cosh b + alpha^2 d^2 / (2 S S').

**For every metric.** d <= S, so that cosh l <= cosh b + alpha^2 exp(-b) / 2, which is at most cosh e for all b in
[0, beta] iff alpha^2 <= F(b) = 2 exp(b) (cosh e - cosh b). F' = 2 exp(b) (cosh e - exp(b)) changes its sign once, from
plus to minus, so F is least at an end:

    alpha <= min( 2 sinh(e/2), sqrt(2 exp(beta) (cosh e - cosh beta)) ).

Up to beta = ln(2 cosh e - 1) < e, where the two are equal, smoothness costs nothing.

**For a difference of means** there are only n-2g pairs of neighbouring counts, s and s-1 people in a group, where both
groups have at least g; they differ by at most d = `flip_sensitivity`. So the largest alpha is known exactly,

    alpha^2 = min over s of 2 S S' (cosh e - cosh ln(S/S')) / d^2,

the least of public numbers, and some pair's loss is e: no epsilon is left. (Up to `_PAIRS_MAX` people.)

**Choice of beta.** The one with the smallest mean scale over a public range of group shares; never from the counts
themselves, on which the scale would then depend.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats
from fairwall.laws.mechanisms.calibration import require_batch
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.metrics.sensitivity import flip_sensitivity, least_stratum, require_groups
from fairwall.laws.noise.distributions import Cauchy

_CANDIDATES = np.linspace(0.02, 0.98, 49)
_EXPONENT_MAX = 500.0
"""Largest epsilon used: above, cosh leaves float64. Noise calibrated for less epsilon remains private."""

_PAIRS_MAX = 2**17
"""Most people for whom all pairs are searched: above, they allow less than 0.1% more alpha, from epsilon 0.01 on."""


@dataclass(frozen=True)
class Tuning:
    """Smoothness and scale of one query's Cauchy noise: scale S / alpha, where S is beta-smooth. Public."""

    beta: float
    alpha: float


def largest_alpha(beta: float, epsilon: float) -> float:
    """Return the largest alpha that is epsilon-private for one query of any metric.

    Beta is above 0 and below epsilon, of which at most 500 is used.
    """
    e = min(epsilon, _EXPONENT_MAX)
    if not 0 < beta < e:
        raise ValueError("beta must be above 0 and below epsilon")
    # cosh e - cosh beta as a product, which keeps its digits where both are near 1.
    product = math.sinh((e + beta) / 2) * math.sinh((e - beta) / 2)
    return min(2 * math.sinh(e / 2), 2 * math.sqrt(math.exp(beta) * product))


def tune(metric: str, n: int, queries: int, epsilon: float, shares: Shares = DEFAULT_SHARES) -> Tuning:
    """Return smoothness and scale chosen from public numbers.

    `metric`: a key of `fairwall.laws.metrics.metric.METRICS` that is bounded. `n`: people in the metric's stratum; for
    a metric that is no difference of means, the people. `epsilon`: privacy budget of the whole batch, above 0 and
    finite. `shares`: the group shares for which the noise should be small, and g.
    """
    require_batch(queries, epsilon)
    if not find_metric(metric).bounded:
        raise ValueError(f"one person can move metric {metric} without limit")
    return _tuned(metric, n, min(epsilon / queries, _EXPONENT_MAX), shares)


@lru_cache(maxsize=1024)
def _tuned(metric: str, n: int, e: float, shares: Shares) -> Tuning:
    """Return the smoothness and scale with the least noise for one query of budget `e`."""
    found = find_metric(metric)
    g, enough = shares.minimum_group, least_stratum(shares.minimum_group)
    by_pairs = len(found.parts) == 1 and enough <= n <= _PAIRS_MAX
    metric, n = metric if len(found.parts) == 1 and n >= enough else "sp", max(n, enough)
    looked_at = np.array(shares.counts(n))
    best, least = Tuning(0.0, 0.0), math.inf
    for beta in (math.log(2 * math.cosh(e) - 1), *(e * _CANDIDATES)):
        if not 0 < beta < e:
            continue  # rounding at the end of the range
        if by_pairs:
            alpha = _pairwise_alpha(_flips(metric, n, g), _smooth(metric, n, beta, g, np.arange(g, n - g + 1)), e)
        else:
            alpha = largest_alpha(beta, e)
        mean = float(np.mean(_smooth(metric, n, beta, g, looked_at))) / alpha
        if mean < least:
            best, least = Tuning(float(beta), alpha), mean
    return best


def tuned_law(metric: str, n0: int, n1: int, queries: int, epsilon: float, shares: Shares = DEFAULT_SHARES) -> Cauchy:
    """Return the noise of one query of a batch, for a metric with one part; none for an infinite epsilon. See `tune`.

    The counts in the metric's stratum, each at least g, are secret, and so is the scale.
    """
    require_batch(queries, epsilon)
    n, g = n0 + n1, shares.minimum_group
    require_groups(n0, n1, least=g)
    if math.isinf(epsilon) or n < least_stratum(g):
        return Cauchy(0.0)
    tuning = tune(metric, n, queries, epsilon, shares)
    return Cauchy(float(_smooth(metric, n, tuning.beta, g, np.array(n0))) / tuning.alpha)


def tuned_loss(metric: str, n: int, queries: int, epsilon: float, shares: Shares = DEFAULT_SHARES) -> Floats:
    """Return the exact privacy losses between neighbouring counts, n0 = s and s-1 for s = g+1 .. n-g, shape (n-2g,).

    Every element is at most epsilon, and the largest is epsilon. For a metric with one part.
    """
    tuning = tune(metric, n, queries, epsilon, shares)
    g = shares.minimum_group
    flips, scales = _flips(metric, n, g), _smooth(metric, n, tuning.beta, g, np.arange(g, n - g + 1)) / tuning.alpha
    half_distance = np.hypot(flips, scales[1:] - scales[:-1]) / (2 * np.sqrt(scales[1:] * scales[:-1]))
    losses: Floats = queries * 2 * np.arcsinh(half_distance)
    return losses


def _flips(metric: str, n: int, g: int) -> Floats:
    """Return the most that a flip moves the metric between s and s-1 people in a group, for s = g+1 .. n-g."""
    return _flip(metric, n, g, np.arange(g + 1, n - g + 1))


def _flip(metric: str, n: int, g: int, s: NDArray[np.intp]) -> Floats:
    """Return the most that a flip moves the metric between s and s-1 people in a group."""
    # For scores it is proportional to 1/(s (n+1-s)), see `fairwall.laws.metrics.sensitivity`, so one value gives the
    # rest.
    flip: Floats = flip_sensitivity(metric, n, g + 1) * ((g + 1.0) * (n - g)) / (s * (n + 1.0 - s))
    return flip


def _smooth(metric: str, n: int, beta: float, g: int, n0: NDArray[np.intp]) -> Floats:
    """Return the smooth sensitivity for some n0 in g .. n-g (`sensitivity.smooth_sensitivity`)."""
    # Flips until the smaller group (or, where that has g people, the larger one) leaves the worst flip.
    away = np.maximum(np.minimum(n0, n - n0) - g - 1, 0)
    most = _flip(metric, n, g, np.array(g + 1))
    smooth: Floats = np.maximum(_flip(metric, n, g, g + 1 + away), np.exp(-beta * away) * most)
    return smooth


def _pairwise_alpha(flips: Floats, smooth: Floats, e: float) -> float:
    b = np.abs(np.log(smooth[1:] / smooth[:-1]))
    slack = 2 * np.sinh((e + b) / 2) * np.sinh((e - b) / 2)
    return math.sqrt(float(np.min(2 * smooth[1:] * smooth[:-1] * slack / flips**2)))
