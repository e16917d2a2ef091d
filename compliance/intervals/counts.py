r"""Intervals of answers that are computed from noisy counts.

A stratum of n people releases N0 with noise and, for each model, the centred sum nu = sum0 - N0/2 with noise, of public
laws, and independent of each other but for the size that a cube's share. Where all N0 and nu were taken for alike
likely beforehand, what is known of them afterwards is what was released less noise: N0 is N with a weight w(N) that
falls as the law of its noise does, and nu is what was released of it plus noise. A gap is monotone in nu for each N,

    gap = (T - sum0)/(n - N) - sum0/N,    so    gap <= t  if and only if  nu >= (T/(n-N) - t) / (1/N + 1/(n-N)) - N/2,

with T the public total, and so P(gap <= t) = sum over N of w(N) P(noise >= that - the released nu). The ends of the
interval are where this is what the level leaves, half of it on either side. Were the gap a weighted sum of N0 and nu,
this interval would hold the truth exactly as often as its level says, whatever the truth is: both are shifted by noise
alone. It is nearly one where N0's noise is small beside N0.

What people of these values cannot add up to is cut off, which leaves no truth out. Predictive parity is a difference of
ratios of two noisy sums each: its ends are quantiles of draws of N0 and nu, seeded, from the same laws.

**Equalized odds** puts two strata together, whose noise is independent. The larger of two absolute gaps lies between
the larger of their lower ends and the larger of their upper ends wherever both lie in their intervals: with probability
LEVEL, where each does with its square root. A sum of two is taken to be as wide as independent errors add up, times
1.15: of two Laplace numbers of scale 1 the sum is beyond 1.15 sqrt(2) ln 20 in 2.6% of cases, and where both gaps are
0, so that their signs are lost, the sum of absolute values is in 4.5%; of two Gaussian ones it is 2.4% and 4.8%. So
these two hold the truth more often than 19 times in 20, mostly: nothing less holds it that often where gaps are 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.intervals.interval import LEVEL, Ends
from compliance.records.metrics import GroupSums
from fairwall.laws.cube import CubeNoise
from fairwall.laws.metric import Metric
from fairwall.laws.noise import Gaussian, Laplace, Law

_LAST_BITS = 2.0**-40
"""For float64's rounding errors in the ends of intervals."""

_WIDER = 1.15
"""See above."""

_TINY = 1e-12
"""What is as good as 0: for a probability, whose log-odds stay finite, and for the scale of no noise."""

_DRAWS = 2000
_DRAWN_LEVEL = LEVEL + 0.01
"""Quantiles of so many draws err, and a ratio is less straight than a gap."""

_SEED = 2014

_STEPS = 30
"""At most, of the secant method on log-odds, which are nearly straight in the tails of these laws, or by halves."""

_NEAR = 1e-3
"""Log-odds that are as good as those of the level: 1e-3 of its 5%."""


@dataclass(frozen=True, eq=False)
class CentredSums:
    """What a stratum releases of one of a metric's sums, for each model.

    Parameters
    ----------
    sums, centres, units : ndarray of float64
        The noisy centred sums, what was taken off each value before it was added up, and the unit of the noise, shape
        (m,).
    law : Law
        Of the noise.
    rounded : float
        How far rounding may have moved a sum, in its unit.
    """

    sums: NDArray[np.float64]
    centres: NDArray[np.float64]
    units: NDArray[np.float64]
    law: Law
    rounded: float


def possible_sums(values: NDArray[np.float64], first: int, last: int) -> Ends:
    """Return each model's least and largest sum over k people, for each k from first to last.

    Parameters
    ----------
    values : ndarray of float64
        Shape (m, n).
    first, last : int
        At least 1, and below n.

    Returns
    -------
    Ends
        Shape (m, last - first + 1) each. The order of addition may cost the last bits.
    """
    ordered, n = np.sort(values, axis=1), values.shape[1]

    def sums(fewest: NDArray[np.float64], further: NDArray[np.float64]) -> NDArray[np.float64]:
        of_all = np.empty((len(values), last - first + 1))
        of_all[:, 0] = fewest.sum(axis=1)
        np.cumsum(further, axis=1, out=of_all[:, 1:])
        of_all[:, 1:] += of_all[:, :1]
        return of_all

    return (
        sums(ordered[:, :first], ordered[:, first:last]),
        sums(ordered[:, n - first :], ordered[:, n - last : n - first][:, ::-1]),
    )


def possible_gaps(
    metric: Metric,
    n: int,
    totals: NDArray[np.float64],
    sizes: NDArray[np.float64],
    sums: Ends,
    centred: NDArray[np.float64],
    reach: NDArray[np.float64] | float,
    centres: NDArray[np.float64] | float = 0.5,
) -> Ends:
    """Return the least and the largest gap of one part, or ratio, that fits what was released.

    Parameters
    ----------
    metric : Metric
        What is asked for.
    n, totals : int, ndarray of float64
        The people in the stratum, and the totals of their values, shape (m,).
    sizes : ndarray of float64
        The possible N0, ascending.
    sums : Ends
        What so many people can add up to, see `possible_sums`.
    centred, reach, centres : ndarray of float64, ndarray of float64 or float, ndarray of float64 or float
        The noisy centred sums, shape (m,), how far from them the exact ones may be, and what was taken off each value.
    """
    ends = list[NDArray[np.float64]]()
    for end in (centred - reach, centred + reach):
        sum0 = np.clip(end[:, np.newaxis] + sizes * np.reshape(centres, (-1, 1)), *sums)
        # The order of addition may cost the last bits, and what is left of a total be below 0.
        mean0, mean1 = sum0 / sizes, np.maximum(totals[:, np.newaxis] - sum0, 0.0) / (n - sizes)
        if metric.bounded:
            ends.append(mean1 - mean0)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                ends.append(mean0 / mean1)
    # For each N0 a gap falls as sum0 grows, and a ratio rises.
    upper, lower = ends if metric.bounded else ends[::-1]
    return lower.min(axis=1) - _LAST_BITS, upper.max(axis=1) + _LAST_BITS


def level_of_parts(metric: Metric) -> float:
    """Return with what probability each part's gap is to lie in its interval."""
    return math.sqrt(LEVEL) if metric.joined == "max" else LEVEL


def combined(metric: Metric, parts: list[Ends]) -> Ends:
    """Make the metric's intervals out of those of its parts' gaps, which are at the level of `level_of_parts`."""
    if not metric.absolute:
        (only,) = parts
        return only
    middles, halves = (np.stack([(high + side * low) / 2 for low, high in parts]) for side in (1, -1))
    if metric.joined == "max":
        return (np.abs(middles) - halves).max(axis=0), (np.abs(middles) + halves).max(axis=0)
    # One gap's interval stays as wide as before its sign came off: what lies below 0 is cut off where it is told, and
    # till then tells how wide the noise is.
    half = halves[0] if len(parts) == 1 else _WIDER * np.sqrt(np.sum(halves**2, axis=0))
    middle = np.abs(middles).sum(axis=0)
    return middle - half, middle + half


def likely_gaps(
    metric: Metric,
    n: int,
    totals: NDArray[np.float64],
    sizes: NDArray[np.float64],
    weights: NDArray[np.float64],
    told: CentredSums,
    possible: Ends,
    level: float,
) -> Ends:
    """Return between what numbers the gap of one part, or the ratio, lies with a probability of the level.

    Parameters
    ----------
    metric : Metric
        What is asked for.
    n, totals : int, ndarray of float64
        The people in the stratum, and the totals of their values, shape (m,).
    sizes, weights : ndarray of float64
        The possible N0, and how likely each is; the weights add up to 1.
    told : CentredSums
        What was released of the sums.
    possible : Ends
        The least and the largest that fits what was released, see `possible_gaps`.
    level : float
        Above 0 and below 1.
    """
    if not told.law.scale:
        return possible
    below, others, total = _distribution(told.law), n - sizes, totals[:, np.newaxis]
    scales = np.maximum(told.law.scale * told.units, _TINY)[:, np.newaxis]
    taken_off = told.centres[:, np.newaxis] * sizes
    # Rounding has moved the sums, no end inwards: a gap falls as they grow, and a ratio rises.
    side = np.array([[1.0], [-1.0]]) if metric.bounded else np.array([[-1.0], [1.0]])
    centred = (told.sums + side * told.rounded * told.units)[..., np.newaxis]

    def at_most(ends: NDArray[np.float64]) -> NDArray[np.float64]:
        """P(gap <= t), or P(ratio <= t/(1-t)), for t of shape (2, m)."""
        t = ends[..., np.newaxis]
        if metric.bounded:
            least = (total / others - t) / (1 / sizes + 1 / others) - taken_off
            return below((centred - least) / scales) @ weights
        odds = t * sizes / ((1 - t) * others + t * sizes)
        return below((odds * total - taken_off - centred) / scales) @ weights

    low, high = possible if metric.bounded else (_share(end) for end in possible)
    sought = np.array([[math.log((1 - level) / (1 + level))], [math.log((1 + level) / (1 - level))]])

    def missing(ends: NDArray[np.float64]) -> NDArray[np.float64]:
        inside = np.clip(at_most(ends), _TINY, 1 - _TINY)
        odds: NDArray[np.float64] = np.log(inside / (1 - inside)) - sought
        return odds

    lower, upper = np.stack([low, low]), np.stack([high, high])
    before, was = lower, missing(lower)
    ends, now = upper, missing(upper)
    # People of these values cannot be beyond: the end is there, wherever the noise alone would put it.
    outside = (was >= 0) | (now <= 0)
    fixed = np.where(was >= 0, lower, upper)
    for _ in range(_STEPS):
        with np.errstate(divide="ignore", invalid="ignore"):
            further = ends - now * (ends - before) / (now - was)
        further = np.where((lower < further) & (further < upper), further, (lower + upper) / 2)
        before, was, ends, now = ends, now, further, missing(further)
        lower, upper = np.where(now < 0, ends, lower), np.where(now < 0, upper, ends)
        if (np.abs(now) < _NEAR)[~outside].all():
            break
    found: NDArray[np.float64] = np.where(outside, fixed, ends)
    least, most = found[0] - _LAST_BITS, found[1] + _LAST_BITS
    return (least, most) if metric.bounded else (_ratio(np.maximum(least, 0.0)), _ratio(np.minimum(most, 1.0)))


def likely_values(
    totals: Sequence[NDArray[np.float64]],
    n: int,
    sizes: NDArray[np.float64],
    weights: NDArray[np.float64],
    told: Sequence[CentredSums],
    value: Callable[[list[GroupSums]], NDArray[np.float64]],
) -> Ends:
    """Return between what numbers a metric of several sums of one stratum lies with a probability of `LEVEL`.

    Parameters
    ----------
    totals, told : sequence of ndarray of float64, sequence of CentredSums
        For each of the metric's parts: the totals of the values, shape (m,), and what was released of their sums.
    n, sizes, weights : int, ndarray of float64, ndarray of float64
        As for `likely_gaps`.
    value : callable
        Computes the metric from possible sums.
    """
    generator = np.random.default_rng(_SEED)
    size = generator.choice(sizes, (_DRAWS, 1), p=weights)
    parts = []
    for total, noisy in zip(totals, told, strict=True):
        drawn = noisy.law.sample(generator, (_DRAWS, noisy.sums.size)) * noisy.units
        sum0 = noisy.sums + drawn + size * noisy.centres
        sum0 = np.clip(sum0, np.maximum(0.0, total - (n - size)), np.minimum(total, size))
        parts.append(GroupSums((total - sum0).ravel(), sum0.ravel(), float(n - sizes[0]), float(sizes[0])))
    values = value(parts).reshape(_DRAWS, -1)
    low, high = np.quantile(values, [(1 - _DRAWN_LEVEL) / 2, (1 + _DRAWN_LEVEL) / 2], axis=0)
    return low, high


def _distribution(law: Law) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    """Return P(noise <= x) for noise of scale 1."""
    match law:
        case Laplace():
            return lambda x: np.where(x < 0, 0.5 * np.exp(-np.abs(x)), 1 - 0.5 * np.exp(-np.abs(x)))
        case Gaussian():
            from scipy.special import ndtr

            normal: Callable[[NDArray[np.float64]], NDArray[np.float64]] = ndtr
            return normal
        case CubeNoise():
            return CubeNoise(1.0, law.sides).distribution
        case _:
            raise ValueError(f"{type(law).__name__} noise is not known")


def _share(ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    return 1 - 1 / (1 + ratio)


def _ratio(share: NDArray[np.float64]) -> NDArray[np.float64]:
    with np.errstate(divide="ignore"):
        return share / (1 - share)
