"""Error bounds of an answer, from public numbers alone: intervals, and probabilities of a population's gap.

An answer is r = g + Z: the gap g of the test set plus noise of a public law. The test set is itself a sample: g = G + S
with G the population's gap. A gap is a difference of two means, so that S has the variance

    sigma^2 = v (1/n1 + 1/n0) = v / (n s (1-s)),    s the share of one of the groups,

with v the variance of the averaged values, of each model separately. n and v are public, since the predictions are: v
is taken from the whole stratum, with one more person of variance 1/4, the largest possible. So it is above the variance
within groups where these differ, and is not 0 for a model that predicts the same for everybody. n0 and n1 are not
public: s is assumed uniform over the usual range. S is assumed normal, which is accurate for some dozens of people in
each group.

**The noise's reach** on either side of an answer holds the test set's gap with the level's probability, whatever it is.

**P(gap > threshold)** is the posterior probability of G > threshold for a prior on G. Most gaps of audits are small:
auditors expect one in twenty, find one in five, and seldom more. The prior is a mixture of normal laws around 0 with
the deviations and weights of `PRIOR`, cut to the metric's range, [-1, 1]: half of it lies within 0.08, nine tenths
within 0.24, and enough beyond that an answer with little noise is believed wherever it is. With f the density of Z,

    P = integral of f(r - g) P(threshold < G <= 1, g) dg  /  integral of f(r - g) P(-1 <= G <= 1, g) dg,

both over the range, which holds the test set's gap as well. For a normal law of deviation t and a sampling error of
deviation sigma, g is normal around 0 with the variance t^2 + sigma^2, and G given g around g t^2 / (t^2 + sigma^2) with
the variance t^2 sigma^2 / (t^2 + sigma^2): all else is a sum over laws and shares. So among answers with "2%", about
populations whose gaps are distributed as the prior, one in fifty has a gap above the threshold. Noise as wide as the
range leaves the prior: P is then the usual share, and independent of the model.

**An answer that is a posterior mean** (`is_posterior`) includes a prior on gaps already, and its interval is a belief
about g, not a likelihood. Counting the prior once more would move g towards no gap twice. So f is then the law of g
itself, and the prior still relates G to g:

    P = integral of f(r - g) P(threshold < G <= 1 | g) dg  /  integral of f(r - g) P(-1 <= G <= 1 | g) dg.

For an **absolute** gap G lies on both sides: P(|G| > threshold, g) has two terms. Where noise is added to the absolute
gap itself, the integral over g is from 0 to 1. With noisy counts the sign is removed last: the answer's density at g is
that of the signed gap, and g goes from -1 to 1.

**An answer from noisy counts**, or from noisy attributes, has an interval too (`compliance.intervals.counts`,
`compliance.mechanisms.randomized_response`), but no law of additive noise. Its probability takes the noise to be normal
with the interval's middle and half-width.

Mechanisms whose noise scale is secret (conceal, cauchy), whose answers are choices (sparse-vector, exponential) or
biased (sample-and-aggregate) get no interval.

**The joint posterior of all gaps of a batch**, where answers have intervals and no posterior of their own.
Answers whose noise has a known law are y = g + noise, with the gaps g. Models that agree have gaps that agree: the
prior of `fairwall.laws.choice.posterior`. With X the centred predictions a gap is -u n / (N0 N1), u = X z. So -n s
(1-s) y is a noisy sum of X, for the share s that is assumed there, and the joint posterior is that of these sums. Noise
is taken to be normal with the interval's half-width, and independent for each model.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeAlias

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.choice.posterior import SHARE, NoisyObservations, posterior
from fairwall.laws.choice.public_batch import Stratum
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.distributions import NoiseDistribution
from fairwall.laws.noise.quantiles import INVERSES, LEVEL, noise_reach

PRIOR = ((0.85, 0.1), (0.15, 0.4))
"""The prior on the population's gap, 0.85 N(0, 0.1^2) + 0.15 N(0, 0.4^2): weights and standard deviations."""

_SHARES = 3
"""Number of shares that stand for the usual range: the middles of as many equal parts."""

_POINTS = 300
"""Points of an integral over the range, on either side of each place where the integrand may turn."""


VARIANCE_MAX = 0.25
"""The largest variance that numbers in [0, 1] can have."""

Ends: TypeAlias = tuple[Floats, Floats]
"""The low and the high ends of many intervals, shape (m,) each."""


def within_range(low: Floats, high: Floats, metric: str) -> Ends:
    """Return intervals cut to the metric's range; NaN stays NaN."""
    ends = metric_range(metric)
    return np.clip(low, *ends), np.clip(high, *ends)


def probabilities_above(
    low: Floats,
    high: Floats,
    values: Iterable[Floats | tuple[int, float]],
    metric: str,
    threshold: float,
    mechanism: str,
) -> Floats:
    """Return P(the population's gap > threshold) for answers with these intervals, shape (m,).

    NaN without an interval, or where the gap is not a difference of two means: its sampling error then depends on more
    than the number of people.

    `low`, `high`: the intervals at `LEVEL`, shape (m,), before any bounding. `values`: for each model, the values
    averaged over the metric's stratum, shape (people,), in [0, 1], or their number and variance; public. `mechanism`:
    name of the mechanism that answered, which has the noise's law.
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


def sampling_deviations(values: Floats | tuple[int, float]) -> Floats:
    """Return possible standard deviations of a test set's gap around the population's, for equally likely group shares.

    ValueError without people.

    `values`: averaged values of everybody in the metric's stratum, shape (people,), in [0, 1], or their number and
    variance; public.
    """
    people, variance = values if isinstance(values, tuple) else (len(values), float(values.var()) if len(values) else 0)
    if not people:
        raise ValueError("there must be people")
    variance = (people * variance + VARIANCE_MAX) / (people + 1)
    low, high = DEFAULT_SHARES.low, DEFAULT_SHARES.high
    shares = low + (high - low) * (np.arange(_SHARES) + 0.5) / _SHARES
    deviations: Floats = np.sqrt(variance / (people * shares * (1 - shares)))
    return deviations


def probability_above(
    answer: float,
    law: NoiseDistribution,
    sampling: Floats,
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
    sampling : equally likely deviations of the sampling error, above 0, shape (k,).
    absolute : whether the metric is an absolute gap.
    sign_lost : for an absolute gap: whether noise was added before the sign was removed.
    is_posterior : whether the answer includes the prior, and the law is that of the test set's gap around it.
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
    answer: float, law: NoiseDistribution, least: float, turns: tuple[float, ...], sigma: float
) -> tuple[Floats, Floats]:
    """Return gaps of a test set in [least, 1], and the weight of the answer's likelihood around each."""
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
    weights: Floats = np.exp(logs - logs.max()) * widths
    return gaps, weights


def draws_of_answers(
    metric: str, mechanism: str, stratum: Stratum, ends: Ends, count: int, generator: np.random.Generator
) -> Floats:
    """Draw gaps jointly, shape (count, m), by intervals of each that hold whatever the attributes.

    NaN where nothing is known, as for absolute gaps, whose signs are lost.

    `stratum`: the people the metric reads. `ends`: the guaranteed intervals, before any bounding.
    """
    low, high = ends
    law, found = MECHANISM_LAWS[mechanism].interval, find_metric(metric)
    if law is None or found.absolute or not found.of_means or len(found.parts) > 1 or not np.isfinite(low + high).all():
        return np.full((count, len(low)), np.nan)
    noise = law.noise(1.0)
    deviations = (high - low) / 2 / noise_reach(noise, LEVEL) * np.sqrt(noise.variance())
    if not deviations.any():
        return np.tile(low, (count, 1))
    per_gap = -stratum.people * SHARE * (1 - SHARE)
    told = per_gap * (low + high) / 2
    seen = NoisyObservations(told, np.zeros(len(told)), stratum.gram, stratum.gram, (per_gap * deviations) ** 2)
    drawn = posterior(stratum.gram, seen, SHARE, stratum.people).draws(count, generator) / per_gap
    return np.clip(drawn, *metric_range(metric))
