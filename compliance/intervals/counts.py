"""Intervals of answers computed from noisy counts: the noise they invert, and the sums that people can have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compliance.intervals.interval import Ends
from compliance.intervals.inversion import BEYOND, LAST_BITS, Reach, StratumPart, gaps_of_part, gaps_of_parts
from compliance.intervals.reach import Additive, Noises, Size, of_common, of_draws, of_sums
from fairwall.arrays import Floats
from fairwall.laws.metrics.metric import Metric
from fairwall.laws.noise.linf_ball import CubeNoise
from fairwall.laws.noise.quantiles import LEVEL


@dataclass(frozen=True, eq=False)
class Common:
    """Noise that several sums share, besides their own.

    `law`: of the cube that its coordinates are from. `weights`: of each coordinate in each sum, shape (m, r). `apart`:
    whether N0's noise, if it is a cube's, is from the sums' own cube and not from this one.
    """

    law: CubeNoise
    weights: Floats
    apart: bool = False

    def split(self, parts: int) -> list[Common]:
        """Return the common noise of each of `parts` equal groups of sums."""
        return [Common(self.law, weights, self.apart) for weights in np.split(self.weights, parts)]


@dataclass(frozen=True, eq=False)
class CentredSums:
    """A stratum's release of one of a metric's sums, for each model, besides N0.

    Parameters
    ----------
    n, totals : the people in the stratum, and the totals of their values, shape (m,). Public.
    sums, centres, units : the noisy centred sums, what was subtracted from each value before summing, and the unit of
        the noise, shape (m,).
    rounded : largest change of each sum by rounding, shape (m,).
    possible : the gaps, or ratios, that people of these values can have, see `possible_gaps`.
    common : noise shared by the sums; if N0's noise is shared, it is of that cube.
    """

    n: int
    totals: Floats
    sums: Floats
    centres: Floats
    units: Floats
    law: Additive
    rounded: Floats
    possible: Ends
    common: Common | None = None

    @property
    def noise(self) -> Noises:
        """The distributions of all noise on the sums."""
        if self.common is None:
            return Noises(self.law)
        return Noises(self.law, self.common.law, len(self.weights), self.common.apart)

    @property
    def weights(self) -> Floats:
        """The weights of common noise in each sum, shape (r, m)."""
        return np.empty((0, len(self.sums))) if self.common is None else self.common.weights.T


def intervals(metric: Metric, sizes: Sequence[Size], fewest: int, parts: Sequence[CentredSums]) -> Ends:
    """Return a metric's intervals at `LEVEL`, from its parts' sums and the N0 of each.

    `fewest` is the least number of people in each group; public.
    """
    if metric.binary:
        return _of_precision(sizes[0], *parts)
    return gaps_of_parts(metric, [_part(size, fewest, of_part) for size, of_part in zip(sizes, parts, strict=True)])


def _part(size: Size, fewest: int, sums: CentredSums) -> StratumPart:
    reach = _reach(size, sums)
    ends, known = size.range(fewest, sums.n), (sums.units == 0) & (sums.weights == 0).all(axis=0)
    return StratumPart(sums.n, sums.totals, size.value, *ends, sums.sums, sums.centres, reach, sums.possible, known)


def _reach(size: Size, sums: CentredSums) -> Reach:
    """Return q for the noise on N0 and on the sums of a stratum."""
    if sums.common is None:
        return of_sums(size, sums.law, sums.units, sums.rounded)
    return of_common(size, sums.noise, sums.units, sums.weights, sums.rounded)


def _of_precision(size: Size, hits: CentredSums, positives: CentredSums) -> Ends:
    """Return intervals of the difference of two shares of hits among positives."""
    reach = _reach(size, positives)(positives.centres, positives.centres, 1 - 2 * BEYOND)
    at, of_hits = (of.sums + of.centres * size.value for of in (positives, hits))
    first, last = np.maximum(at - reach, 0.0), np.minimum(at + reach, positives.totals)
    none = positives.totals == 0
    # Where a group may have no positives, the metric is 0 by definition.
    told = (first > 0.5) & (last < positives.totals - 0.5)
    total, at, first, last = (np.where(told, of, 1.0) for of in (positives.totals, at, first, last))

    def sums(least: Floats, most: Floats, level: float) -> Floats:
        found = []
        for slope in (least, most):
            weights = np.vstack([
                hits.centres - slope * positives.centres, hits.units, -slope * positives.units,
                hits.weights - slope * positives.weights,
            ])  # fmt: skip
            rounded = hits.rounded + np.abs(slope) * positives.rounded
            found.append(of_draws(size, hits.noise, weights, level, rounded))
        return np.maximum(*found)

    reached = np.where(none, 0.0, 1.0)
    part = StratumPart(total, hits.totals, at, first, last, of_hits, 0.0, sums, (-reached, reached), ~told)
    return gaps_of_part(part, LEVEL + 2 * BEYOND)


def possible_gaps(
    metric: Metric, n: int, totals: Floats, sizes: Floats, sums: Ends
) -> Ends:  # fmt: skip
    """Return the least and the largest gap, or ratio, of one part that people of these values can have.

    `n`, `totals`: the people in the stratum, and the totals of their values, shape (m,). `sizes`: the possible N0,
    ascending. `sums`: least and most sums of N0 people, see `possible_sums`.
    """
    ends = list[Floats]()
    for sum0 in sums:
        # The order of addition may cost the last bits, and what is left of a total be below 0.
        mean0, mean1 = sum0 / sizes, np.maximum(totals[:, np.newaxis] - sum0, 0.0) / (n - sizes)
        if metric.bounded:
            ends.append(mean1 - mean0)
        else:
            with np.errstate(divide="ignore", invalid="ignore"):
                ends.append(mean0 / mean1)
    # For each N0 a gap falls as sum0 grows, and a ratio rises; that of nobody to nobody may be any.
    if metric.bounded:
        upper, lower = ends
    else:
        lower, upper = (np.where(np.isnan(end), told, end) for end, told in zip(ends, (0.0, np.inf), strict=True))
    return lower.min(axis=1) - LAST_BITS, upper.max(axis=1) + LAST_BITS
