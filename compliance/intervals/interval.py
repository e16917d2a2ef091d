r"""How far an answer may be from the truth, told from public numbers alone.

An answer is r = g + Z: the gap g of the test set plus noise of a public law. The test set is itself a sample: g = G + S
with G the population's gap. A gap is a difference of two means, so that S has the variance

    sigma^2 = v (1/n1 + 1/n0) = v / (n s (1-s)),    s the share of one of the groups,

with v the variance of what is averaged, of each model by itself. n and v are public, since the predictions are: v is
taken from the whole stratum, as if one more person were there whose variance is 1/4, the largest one. So it is above
that within groups where these differ, and is not 0 for a model that predicts the same for everybody. n0 and n1 are not
public: s is taken to be spread evenly over the usual range. S is taken to be normal, which is good for some dozens of
people in each group.

**The noise's reach** on either side of an answer holds the test set's gap with the level's probability, whatever it is.

**P(gap > threshold)** is the posterior probability of G > threshold for a prior on G. Gaps of audits are small, mostly:
people who ask expect one in twenty, find one in five, and seldom more. The prior is a mixture of normal laws around 0
with the deviations and weights of `PRIOR`, cut to the metric's range, [-1, 1]: half of it lies within 0.08, nine tenths
within 0.24, and so much beyond that an answer with little noise is believed wherever it is. With f the density of Z,

    P = integral of f(r - g) P(threshold < G <= 1, g) dg  /  integral of f(r - g) P(-1 <= G <= 1, g) dg,

both over the range, in which the test set's gap lies as well. Of a normal law of deviation t and a sampling error of
deviation sigma, g is normal around 0 with the variance t^2 + sigma^2, and G given g around g t^2 / (t^2 + sigma^2) with
the variance t^2 sigma^2 / (t^2 + sigma^2): all else is a sum over laws and shares. So of answers with "2%", about
populations whose gaps are spread as the prior has them, one in fifty has a gap above the threshold. Noise as wide as
the range leaves the prior: P says then what is usual, and nothing about the model.

**An answer that is a posterior mean** (`is_posterior`) has counted what gaps usually are, and its interval says where g
lies, not what was seen of it. Counting the prior once more would move g towards no gap twice. So f is then the law of
g itself, and the prior still says how G lies around g:

    P = integral of f(r - g) P(threshold < G <= 1 | g) dg  /  integral of f(r - g) P(-1 <= G <= 1 | g) dg.

For an **absolute** gap G lies on both sides: P(|G| > threshold, g) has two terms. Where
noise is added to the absolute gap itself, the integral over g is from 0 to 1. Of noisy counts the sign comes off last:
the answer's density at g is that of the gap with its sign, and g goes from -1 to 1.

**An answer from noisy counts**, or from noisy attributes, has an interval too (`compliance.intervals.counts`,
`compliance.mechanisms.randomized_response`), but no law of additive noise. Its probability takes the noise to be normal
with the interval's middle and half-width.

Mechanisms whose noise scale is secret (conceal, cauchy), whose answers are choices (sparse-vector, exponential) or are
biased (sample-and-aggregate) have nothing to give here, and get no interval.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.bounding import metric_range
from fairwall.laws.mechanisms import MECHANISM_LAWS
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Law
from fairwall.laws.quantiles import INVERSES, noise_reach
from fairwall.laws.shares import DEFAULT_SHARES

PRIOR = ((0.85, 0.1), (0.15, 0.4))
"""The prior on the population's gap, 0.85 N(0, 0.1^2) + 0.15 N(0, 0.4^2): weights and standard deviations."""

_SHARES = 3
"""So many shares stand for the usual range: the middles of as many parts of it."""

_POINTS = 300
"""Of an integral over the range, on either side of each place where the integrand may turn."""


VARIANCE_MAX = 0.25
"""The largest variance that numbers in [0, 1] can have."""

Ends: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The low and the high ends of many intervals, shape (m,) each."""


def within_range(low: NDArray[np.float64], high: NDArray[np.float64], metric: str) -> Ends:
    """Cut intervals to the range in which every value of the metric lies; NaN stays NaN."""
    ends = metric_range(metric)
    return np.clip(low, *ends), np.clip(high, *ends)


def probabilities_above(
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    values: Iterable[NDArray[np.float64] | tuple[int, float]],
    metric: str,
    threshold: float,
    mechanism: str,
) -> NDArray[np.float64]:
    """Return P(the population's gap > threshold) for answers with these intervals.

    Parameters
    ----------
    low, high : ndarray of float64
        The intervals at `LEVEL`, shape (m,), before any bounding.
    values : iterable of ndarray of float64, or of (int, float)
        What the metric averages for each model about its stratum, shape (people,) each, in [0, 1], or how many people
        there are and the variance of that; public.
    metric : a key of `fairwall.laws.metric.METRICS`.
    threshold : what the gaps are compared with.
    mechanism : the name of what answered; it tells the noise's law.

    Returns
    -------
    NDArray[np.float64]
        Shape (m,). NaN without an interval, or where the gap is not that of two means: its sampling error depends on
        more than how many people there are.
    """
    found = find_metric(metric)
    law = MECHANISM_LAWS.get(mechanism)
    told = None if law is None else law.interval
    if told is None or len(found.parts) != 1 or not found.bounded:
        return np.full(low.shape, np.nan)
    scales = (high - low) / 2 / noise_reach(told.noise(1.0))
    return np.array(
        [
            probability_above(
                middle,
                told.noise(scale),
                sampling_deviations(of_model),
                threshold,
                absolute=found.absolute,
                sign_lost=not told.is_added,
                is_posterior=told.is_posterior,
            )
            if math.isfinite(scale)
            else math.nan
            for middle, scale, of_model in zip((low + high) / 2, scales.tolist(), values, strict=True)
        ]
    )


def sampling_deviations(values: NDArray[np.float64] | tuple[int, float]) -> NDArray[np.float64]:
    """Return what the standard deviation of a test set's gap around the population's may be, by the share of a group.

    Parameters
    ----------
    values : ndarray of float64, or (int, float)
        What is averaged, of everybody in the metric's stratum, shape (people,), in [0, 1], or how many they are and its
        variance; public.

    Returns
    -------
    NDArray[np.float64]
        Each as likely as the others.

    Raises
    ------
    ValueError
        Without people.
    """
    people, variance = values if isinstance(values, tuple) else (len(values), float(values.var()) if len(values) else 0)
    if not people:
        raise ValueError("there must be people")
    variance = (people * variance + VARIANCE_MAX) / (people + 1)
    low, high = DEFAULT_SHARES.low, DEFAULT_SHARES.high
    shares = low + (high - low) * (np.arange(_SHARES) + 0.5) / _SHARES
    deviations: NDArray[np.float64] = np.sqrt(variance / (people * shares * (1 - shares)))
    return deviations


def probability_above(
    answer: float,
    law: Law,
    sampling: NDArray[np.float64],
    threshold: float,
    *,
    absolute: bool = False,
    sign_lost: bool = False,
    is_posterior: bool = False,
) -> float:
    """Return P(the population's gap > threshold), noise and sampling error included.

    ValueError for a law without known quantiles.

    Parameters
    ----------
    answer : as released, before any bounding; NaN gives NaN.
    law : the noise's; public.
    sampling : ndarray of float64
        Deviations of the sampling error, above 0, each as likely, shape (k,).
    threshold : what the gap is compared with.
    absolute : whether the metric is an absolute gap.
    sign_lost : of an absolute gap: whether noise came before the sign was taken off, not after.
    is_posterior : whether the answer has counted the prior, and the law says where the test set's gap lies around it.
    """
    from scipy.special import ndtr

    if type(law) not in INVERSES:
        raise ValueError(f"{type(law).__name__} noise is not known")
    if math.isnan(answer):
        return math.nan
    at = min(max(threshold, 0.0 if absolute else -1.0), 1.0)
    least = 0.0 if absolute and not sign_lost else -1.0
    turns = (0.0, at, -at) if absolute else (0.0, at)
    gaps, weights = _seen(answer, law, least, turns, float(sampling.min()))
    shares, deviations = np.array(PRIOR).T[:, :, np.newaxis, np.newaxis]
    errors = sampling[:, np.newaxis]
    together = np.hypot(deviations, errors)
    likely = shares / together * np.exp(-0.5 * (gaps / together) ** 2)
    likely = weights * (likely / likely.sum(axis=0) if is_posterior else likely)
    middles, spreads = gaps * (deviations / together) ** 2, deviations * errors / together

    def between(low: float, high: float) -> float:
        return float((likely * (ndtr((high - middles) / spreads) - ndtr((low - middles) / spreads))).sum())

    above = between(at, 1.0) + (between(-1.0, -at) if absolute else 0.0)
    return min(1.0, above / between(-1.0, 1.0))


def _seen(
    answer: float, law: Law, least: float, turns: tuple[float, ...], sigma: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return gaps of a test set in [least, 1], and how much of the likelihood of the answer lies around each."""
    likeliest = min(max(answer, least), 1.0)
    if not law.scale:
        return np.array([likeliest]), np.ones(1)
    # The noise has its peak at the likeliest, the prior at 0, the sample turns at the threshold: all are smooth in
    # proportion to the distance from there.
    steps = np.geomspace(min(1.0, law.scale, sigma) * 1e-3, 2.0, _POINTS)
    around = np.concatenate((-steps, [0.0], steps))
    gaps = np.unique(np.clip(np.concatenate([place + around for place in (likeliest, *turns)]), least, 1.0))
    logs = law.log_density(answer - gaps)
    widths = np.gradient(gaps)
    widths[[0, -1]] /= 2
    weights: NDArray[np.float64] = np.exp(logs - logs.max()) * widths
    return gaps, weights
