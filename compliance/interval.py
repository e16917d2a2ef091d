r"""How far an answer may be from the truth, told from public numbers alone.

An answer is r = g + Z: the gap g of the test set plus noise of a public law. The test set is itself a sample: g = G + S
with G the population's gap. A gap is a difference of two means of numbers in [0, 1], whose variances are at most 1/4,
so that S has a variance of at most

    sigma^2 = 1/(4 n1) + 1/(4 n0) = 1 / (4 n s (1-s)),    s the share of one of the groups.

n is public, n0 and n1 are not: the caller assumes a range of shares, and the end that is farther from 1/2 counts. S is
taken to be normal, which is good for some dozens of people in each group, on the safe side where variances are below
1/4.

**The noise's reach** on either side of an answer holds the test set's gap with the level's probability, whatever it is.

**P(gap > threshold)** is P(Z + S < r - threshold) = the mean over Z of Phi((r - Z - threshold) / sigma). It is the
posterior probability of G > threshold under a flat prior, and one minus the p-value against G <= threshold: where G is
the threshold or below, it exceeds 1 - alpha with a probability of at most alpha.

For an **absolute** gap, |G| > threshold has two sides. Given |g| = max(r - Z, 0) it is
Phi((|g| - threshold)/sigma) + Phi((-|g| - threshold)/sigma), by the symmetry of S. For a threshold far above sigma the
second term vanishes and the error rate above holds; for one near 0 it does not: every population has an absolute gap
above 0.

**An answer from noisy counts** has an interval too, `compliance.mechanisms.counts`, but no law of additive noise. Its
probability, and that of any answer that is stored with its interval, takes the noise to be normal with the interval's
middle and half-width, `probabilities_above`: exact for Gaussian noise; for Laplace noise, the same at 95%. For counts
it is an approximation: of populations at the threshold, simulations claim "P > 95%" in 5% of cases at most, but
"P > 80%" in up to 28%, where N0 is hardly known.

Mechanisms whose noise scale is secret (conceal, cauchy), whose answers are choices (sparse-vector, exponential), are
biased (sample-and-aggregate) or come from noisy attributes have nothing to give here, and get no interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.bounding import metric_range
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Cauchy, Gaussian, Laplace, Law
from fairwall.laws.shares import DEFAULT_SHARES

LEVEL = 0.95
"""With what probability an answer's interval holds the exact gap, at least."""

# The mean over Z is a sum over its quantiles. Phi is monotone, so that the error is at most half a term.
_QUANTILES = 10_000


Ends: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The low and the high ends of many intervals, shape (m,) each."""


def noise_reach(law: Law, level: float = LEVEL) -> float:
    """Return what noise is at most, either way, with a probability of the level.

    Raises
    ------
    ValueError
        For a level out of range, or a law without known quantiles.
    """
    if not 0 < level < 1:
        raise ValueError("the level must be above 0 and below 1")
    return float(_quantiles(law, np.array([(1 + level) / 2]))[0])


def within_range(low: NDArray[np.float64], high: NDArray[np.float64], metric: str) -> Ends:
    """Cut intervals to the range in which every value of the metric lies; NaN stays NaN."""
    ends = metric_range(metric)
    return np.clip(low, *ends), np.clip(high, *ends)


def probabilities_above(
    low: NDArray[np.float64], high: NDArray[np.float64], people: int, metric: str, threshold: float
) -> NDArray[np.float64]:
    """Return P(the population's gap > threshold) for answers with these intervals.

    Parameters
    ----------
    low, high
        The noise's intervals at `LEVEL`, shape (m,), before any bounding.
    people
        In the metric's stratum, at least 1; public.
    metric
        A key of `fairwall.laws.metric.METRICS`.
    threshold
        What the gaps are compared with.

    Returns
    -------
    NDArray[np.float64]
        Shape (m,). NaN without an interval, or where the gap is not that of two means: its sampling error depends on
        more than how many people there are.
    """
    found = find_metric(metric)
    if len(found.parts) != 1 or not found.bounded:
        return np.full(low.shape, np.nan)
    shares = DEFAULT_SHARES.low, DEFAULT_SHARES.high
    deviations = (high - low) / 2 / noise_reach(Gaussian(1.0))
    return np.array(
        [
            probability_above(middle, Gaussian(deviation), people, shares, threshold, absolute=found.absolute)
            if math.isfinite(deviation)
            else math.nan
            for middle, deviation in zip((low + high) / 2, deviations.tolist(), strict=True)
        ]
    )


def sampling_deviation(people: int, shares: tuple[float, float]) -> float:
    """Return the largest standard deviation of a test set's gap around the population's.

    Parameters
    ----------
    people
        In the metric's stratum, at least 1; public.
    shares
        The least and the largest share that one of the groups is assumed to have, within (0, 1).

    Raises
    ------
    ValueError
        For an argument out of range.
    """
    low, high = shares
    if not 0 < low <= high < 1:
        raise ValueError("shares must be above 0, below 1 and in order")
    if people < 1:
        raise ValueError("there must be people")
    return max(0.5 / math.sqrt(people * share * (1 - share)) for share in shares)


def probability_above(
    answer: float,
    law: Law,
    people: int,
    shares: tuple[float, float],
    threshold: float,
    *,
    absolute: bool = False,
) -> float:
    """Return P(the population's gap > threshold), noise and sampling error included.

    Parameters
    ----------
    answer
        As released, before any bounding; NaN gives NaN.
    law
        The noise's; public.
    people, shares
        As for `sampling_deviation`.
    threshold
        What the gap is compared with.
    absolute
        Whether the metric is an absolute gap.

    Raises
    ------
    ValueError
        For an argument out of range, or a law without known quantiles.
    """
    from scipy.special import ndtr

    sigma = sampling_deviation(people, shares)
    noise = _quantiles(law, (np.arange(_QUANTILES) + 0.5) / _QUANTILES)
    gap = answer - noise
    if not absolute:
        return float(np.mean(ndtr((gap - threshold) / sigma)))
    # Not np.maximum's zero for NaN: what was not answered has no probability.
    gap = np.where(gap < 0, 0.0, gap)
    return float(np.mean(ndtr((gap - threshold) / sigma) + ndtr((-gap - threshold) / sigma)))


def _quantiles(law: Law, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    if type(law) not in _INVERSES:
        raise ValueError(f"the quantiles of {type(law).__name__} noise are not known")
    return law.scale * _INVERSES[type(law)](probabilities) if law.scale else np.zeros(probabilities.shape)


def _laplace(u: NDArray[np.float64]) -> NDArray[np.float64]:
    inverse: NDArray[np.float64] = -np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5))
    return inverse


def _gaussian(u: NDArray[np.float64]) -> NDArray[np.float64]:
    from scipy.special import ndtri

    inverse: NDArray[np.float64] = ndtri(u)
    return inverse


def _cauchy(u: NDArray[np.float64]) -> NDArray[np.float64]:
    inverse: NDArray[np.float64] = np.tan(math.pi * (u - 0.5))
    return inverse


_INVERSES: dict[type, Callable[[NDArray[np.float64]], NDArray[np.float64]]] = {
    Laplace: _laplace,
    Gaussian: _gaussian,
    Cauchy: _cauchy,
}
