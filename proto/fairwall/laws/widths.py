"""Predict how far noise moves a batch's gaps, and the widths of guaranteed intervals, without looking at A.

An interval is as wide as the noise on N0 and on a sum moves a gap, to first order: nu' e0 and e1, over h = N0 N1 / n
(`compliance.intervals.inversion`). The reaches of both are combined as independent errors are.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.batch import AskedBatch, Stratum
from fairwall.laws.counts import gaussian_scales, laplace_scales
from fairwall.laws.cube import coordinates, cube_scales
from fairwall.laws.gaussian import gaussian_multiplier
from fairwall.laws.low_rank import best_split
from fairwall.laws.mechanisms import MECHANISM_LAWS, NoiseInputs
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Gaussian, Laplace, NoiseDistribution
from fairwall.laws.posterior import SHARE
from fairwall.laws.quantiles import noise_reach
from fairwall.laws.response import response_widths, turned_law, turning_probability
from fairwall.laws.shares import Shares

_FARTHER = 2.0
"""Range in which N0 is searched, as a multiple of its 95% noise reach, approximately."""

_SUMMED = 1.2
"""Margin of two cubes' half-widths: the combination of three noises predicts widths within this factor."""


def half_widths(batch: AskedBatch, mechanism: str, epsilon: float, delta: float, shares: Shares) -> NDArray[np.float64]:
    """Return the expected half-widths of a guaranteed interval, shape (2, 2, 3).

    First axis: from the noise, at most 1; and cut off to the gaps that people of these values can have. Second: without
    a gap, and at the largest gap. Third: for groups of the least size of the public range, of `SHARE` of the people,
    and of the largest. Epsilon is above 0 and finite, the budget of the whole batch.
    """
    law, found = MECHANISM_LAWS[mechanism], []
    nothing = law.interval is None or law.interval.is_posterior or law.is_choice
    for stratum in batch.strata:
        n = stratum.people
        sizes = np.array([min(shares.counts(n)), _smaller_group(stratum, shares), max(shares.counts(n))])
        apart, reach = sizes * (n - sizes) / n, 0.0
        gaps = np.stack([np.zeros(len(sizes)), _half_ranges(stratum, sizes)])
        if nothing:
            widths = np.full(gaps.shape, np.inf)
        elif law.noise_on == "gaps":
            widths = np.full(gaps.shape, noise_reach(noise_on_gaps(batch, stratum, mechanism, epsilon, delta, shares)))
        elif law.noise_on == "attributes":
            deviation, turned = float(stratum.inside.std(axis=1).mean()), turned_law([turning_probability(epsilon)])
            widths, reach = response_widths(deviation, n, sizes, gaps, *turned)
        else:
            squared, squares = noise_on_sums(stratum, mechanism, epsilon, delta, noise_reach)
            surely, reach = _SUMMED if law.noise_on == "directions" else 1.0, math.sqrt(squared)
            widths = surely * np.sqrt(float(np.sqrt(squares).mean()) ** 2 + gaps**2 * squared) / apart
        fewest = np.maximum(sizes - _FARTHER * reach, shares.minimum_group).astype(np.intp)
        found.append([np.minimum(widths, 1.0), np.minimum(widths, _half_ranges(stratum, fewest))])
    total: NDArray[np.float64] = np.mean(found, axis=0)
    return total


def _half_ranges(stratum: Stratum, sizes: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return half the range of possible gaps of groups of some sizes, the mean over models."""
    sums, n = np.concatenate([[0.0], np.cumsum(stratum.ordered)]) * stratum.stands_for, stratum.people
    of_first, of_others = np.interp([sizes, n - sizes], stratum.stands_for * np.arange(len(sums)), sums)
    # Rounding could make this negative for constant values.
    between = np.maximum(sums[-1] - of_others - of_first, 0.0)
    ranges: NDArray[np.float64] = between * (1 / sizes + 1 / (n - sizes)) / 2
    return ranges


def noise_on_gaps(
    batch: AskedBatch, stratum: Stratum, mechanism: str, epsilon: float, delta: float, shares: Shares
) -> NoiseDistribution:
    """Return the distribution of a mechanism's noise on each gap of a stratum."""
    n0 = _smaller_group(stratum, shares)
    proxy = batch.metric if find_metric(batch.metric).of_means else "abs_sp"
    about = NoiseInputs(proxy, n0, stratum.people - n0, batch.queries, epsilon, delta, shares=shares)
    law = MECHANISM_LAWS[mechanism].error(about)
    assert law is not None, "what adds noise has a law"
    return law


def noise_on_sums(
    stratum: Stratum,
    mechanism: str,
    epsilon: float,
    delta: float,
    size_of: Callable[[NoiseDistribution], float],
    models: int | None = None,
) -> tuple[float, NDArray[np.float64]]:
    """Return the squared size of the noise on N0, and on each sum, shape (models,), including N0's part in it.

    `mechanism`: one that adds noise to N0 and to sums, separately or by cubes. `size_of`: the measure of a
    distribution's size, such as `noise_reach`. `models`: the number of sums evaluated, the first ones; all by default.
    """
    values, means, k = stratum.inside[:models], stratum.means[:models], stratum.rows
    if MECHANISM_LAWS[mechanism].noise_on == "cube":
        told = coordinates([values], 2.0**-20)
        cube = cube_scales(told.sides, epsilon)
        of_one = size_of(cube.law) ** 2
        of_size = of_one if cube.size is None else size_of(Laplace(cube.size)) ** 2
        return of_size, told.halves**2 * of_one + (means - told.centres) ** 2 * of_size
    if MECHANISM_LAWS[mechanism].noise_on == "directions":
        split = best_split(values, epsilon, 2.0**-20, size_known=False)
        common, of_own = (size_of(law) ** 2 if law.scale else 0.0 for law in (split.law, split.own_law))
        told_by_all = np.square(split.weights).sum(axis=1) + (means - split.own.centres) ** 2
        return common, split.own.halves**2 * of_own + told_by_all * common
    kind: type[Laplace | Gaussian]
    if MECHANISM_LAWS[mechanism].needs_delta:
        scales, kind = gaussian_scales(k, gaussian_multiplier(epsilon, delta)), Gaussian
    else:
        scales, kind = laplace_scales(k, epsilon), Laplace
    of_size, of_sums = (size_of(kind(scale)) ** 2 for scale in (scales.size, scales.sums))
    return of_size, of_sums + (means - 0.5) ** 2 * of_size


def _smaller_group(stratum: Stratum, shares: Shares) -> int:
    """Return the assumed number of disadvantaged people: `SHARE` of the people, within the allowed group sizes."""
    n, least = stratum.people, shares.minimum_group
    return min(max(least, round(SHARE * n)), n - least)
