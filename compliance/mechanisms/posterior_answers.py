"""Answers and intervals of a batch from noisy sums that it shares, by the joint posterior (`fairwall.laws.posterior`).

**Intervals.** u, what the disadvantaged add up to beyond their share of the total, is taken to be normal around its
posterior mean with `Posterior.variance`, which takes from the prior only what the sums cannot tell. N0 errs besides: a
gap is -u n / (N0 N1), so that N0 off by d counts like u off by u (1/N0 - 1/N1) d. Gaps and ratios are monotone in u,
and so their ends are where u has its ends. Of predictive parity, which is a difference of ratios of two sums, the
derivative at the answer says how both of them move it. Where a sum is as large or as small as N0 lets it be, N0's own
error moves that end as well.

How predictions go with the protected attribute among people whom no sum tells apart is known by the prior alone, and so
is the size of what noise leaves. In 2,000 made worlds 96 to 97% of gaps lay in their intervals, 3% wider than that.
Models of one batch agree, and so do their errors: of single batches it can be few. Of a later batch of one model,
answered from cells that were bought for another, 92.7% of gaps lay in intervals 5% wider, and 76% where what no cell
sees was taken to go on as what they see.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.intervals.interval import Ends
from compliance.intervals.inversion import combined, level_of_parts
from compliance.mechanisms.counts import consistent
from compliance.mechanisms.mechanism import Question
from compliance.records.metrics import GroupSums, gaps
from fairwall.laws.batch import Stratum
from fairwall.laws.metric import Metric, find_metric
from fairwall.laws.posterior import Posterior, Seen, near, posterior

WIDER = 1.03
"""See above."""

_WIDER_SUM = 1.15

_EXCESS_MAX = 20.0
"""Noise with more is 0 in 19 of 20 cases and more."""


@dataclass(frozen=True, eq=False)
class Told:
    """What is known of a stratum.

    Parameters
    ----------
    size, size_variance : float
        N0 as released, and the variance of its noise.
    seen : Seen
        The noisy sums.
    excess : float
        The excess kurtosis of all noise on N0 together; 0 for normal noise.
    """

    size: float
    size_variance: float
    seen: Seen
    excess: float = 0.0


Look = Callable[[Stratum], Told]
"""From a stratum to what is known of it."""


def answers(question: Question, look: Look) -> tuple[NDArray[np.float64], Ends]:
    """Answer a batch.

    Parameters
    ----------
    question : Question
        The batch.
    look : Look
        Called once for each stratum of the metric.

    Returns
    -------
    values, likely : NDArray[np.float64], Ends
        Shape (m,) each.
    """
    metric, m = find_metric(question.metric), question.queries
    estimates, ends = dict[int, GroupSums](), list[Ends]()
    fewest = question.records.minimum_group
    for stratum in question.asked.strata:
        n, told = stratum.people, look(stratum)
        size = float(np.clip(told.size, fewest, n - fewest))
        found = near(posterior(stratum.gram, told.seen, size / n, n), told.seen, size / n)

        def sums(
            u: NDArray[np.float64],
            larger: float = 0.0,
            n: int = n,
            size: float = size,
            means: NDArray[np.float64] = stratum.means,
        ) -> list[GroupSums]:
            """Return possible sums of each part, for values in [0, 1], where either group may be so much larger.

            Where all or none are in one group, that moves the gap as if the sum were larger or smaller than may be.
            """
            up, down = min(larger, n - fewest - size), min(larger, size - fewest)
            least = np.maximum(-means * size / (n - size) * up, n * means - (n - size) - down)
            most = np.minimum(n * means + means * (n - size) / size * down, size + up)
            sum0 = np.clip(size * means + u, least, most)
            return [
                GroupSums(total - part, part, n1=n - size, n0=size)
                for part, total in zip(np.split(sum0, len(sum0) // m), np.split(n * means, len(sum0) // m), strict=True)
            ]

        estimates.update(zip(stratum.parts, sums(found.mean), strict=True))
        by_size = (found.mean * (1 / size - 1 / (n - size))) ** 2 * told.size_variance
        if metric.binary:
            ends.append(_ends_of_ratios(metric, found, by_size, sums, _reach(metric, told.excess)))
        else:
            farther = _reach(metric, told.excess)
            reach, larger = farther * np.sqrt(found.variance() + by_size), farther * math.sqrt(told.size_variance)
            lower, upper = (sums(found.mean + side * reach, larger) for side in (1, -1))
            for below, above in zip(lower, upper, strict=True):
                both = [gaps(_signed(metric), consistent(metric, [part])) for part in (below, above)]
                ends.append((np.minimum(*both), np.maximum(*both)))
    parts = consistent(metric, [estimates[i] for i in range(len(metric.parts))])
    return gaps(question.metric, parts), _of_sum(ends) if metric.joined == "sum" else combined(metric, ends)


def _of_sum(parts: list[Ends]) -> Ends:
    """Make intervals of a sum of absolute gaps: as wide as independent errors add up, and a little wider.

    Where both gaps are 0, so that signs are lost, the sum of two normal errors of one size is beyond that in 4.8%.
    """
    half = _WIDER_SUM * np.sqrt(sum(((high - low) / 2) ** 2 for low, high in parts))
    middle = sum(np.abs(high + low) / 2 for low, high in parts)
    return middle - half, middle + half


def _ends_of_ratios(
    metric: Metric,
    found: Posterior,
    by_size: NDArray[np.float64],
    sums: Callable[[NDArray[np.float64]], list[GroupSums]],
    farther: float,
) -> Ends:
    """Return the ends of a metric of two sums of one stratum, by its derivatives."""
    m = len(found.mean) // 2
    middle = gaps(metric.name, consistent(metric, sums(found.mean)))
    slopes = []
    for part in range(2):
        moved = np.zeros_like(found.mean)
        moved[part * m : (part + 1) * m] = 0.5
        sides = [gaps(metric.name, consistent(metric, sums(found.mean + side * moved))) for side in (1, -1)]
        slopes.append(np.diag(sides[0] - sides[1]))
    by_both = np.hstack(slopes)
    reach = farther * np.sqrt(found.variance(by_both) + by_both**2 @ by_size)
    return middle - reach, middle + reach


def _reach(metric: Metric, excess: float) -> float:
    """Return how many deviations an interval reaches: with heavier tails farther, as Cornish and Fisher have it.

    Whole-number noise of little variance is 0 mostly, and 1 more often than a normal law has it.
    """
    from scipy.special import ndtri

    normal = float(ndtri((1 + level_of_parts(metric)) / 2))
    return WIDER * (normal + (normal**3 - 3 * normal) * min(excess, _EXCESS_MAX) / 24)


def _signed(metric: Metric) -> str:
    return "sp" if metric.bounded else metric.name
