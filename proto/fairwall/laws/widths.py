"""How far noise will move a batch's gaps, and how wide guaranteed intervals will be; nobody looks at A.

An interval is as wide as the noise on N0 and on a sum moves a gap, to first order: nu' e0 and e1, over h = N0 N1 / n
(`compliance.intervals.inversion`). The reaches of both are put together as of independent errors.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.batch import AskedBatch, Stratum
from fairwall.laws.counts import gaussian_scales, laplace_scales
from fairwall.laws.cube import CubeNoise, coordinates, cube_scales
from fairwall.laws.gaussian import gaussian_multiplier
from fairwall.laws.low_rank import best_split
from fairwall.laws.mechanisms import MECHANISM_LAWS, Batch
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Gaussian, Laplace, Law
from fairwall.laws.posterior import SHARE
from fairwall.laws.quantiles import noise_reach
from fairwall.laws.response import response_widths, turned_law, turning_probability
from fairwall.laws.shares import Shares

_SIZES = 3


def half_widths(batch: AskedBatch, mechanism: str, epsilon: float, delta: float, shares: Shares) -> NDArray[np.float64]:
    """Return the half-widths to expect of a gap's guaranteed interval, for groups of several sizes of a public range.

    Epsilon is above 0 and finite, the budget of the whole batch. The group is of the least size first, then of `SHARE`
    of the people, then of the largest. No gap is beyond 1, which a mechanism that promises nothing has too.
    """
    law = MECHANISM_LAWS[mechanism]
    if law.interval is None or law.interval.is_posterior or law.is_choice:
        return np.ones(_SIZES)
    found = []
    for stratum in batch.strata:
        n, turned = stratum.people, turned_law([turning_probability(epsilon)])
        sizes = np.array([min(shares.counts(n)), _smaller_group(stratum, shares), max(shares.counts(n))])
        apart = sizes * (n - sizes) / n
        if law.noise_on == "gaps":
            of_gaps = noise_on_gaps(batch, stratum, mechanism, epsilon, delta, shares)
            found.append(np.full(_SIZES, noise_reach(of_gaps)))
        elif law.noise_on == "attributes":
            found.append(response_widths(float(stratum.inside.std(axis=1).mean()), n, sizes, *turned))
        else:
            _, squares = noise_on_sums(stratum, mechanism, epsilon, delta, noise_reach)
            found.append(float(np.sqrt(squares).mean()) / apart)
    widths: NDArray[np.float64] = np.minimum(sum(found) / len(found), 1.0)
    return widths


def noise_on_gaps(
    batch: AskedBatch, stratum: Stratum, mechanism: str, epsilon: float, delta: float, shares: Shares
) -> Law:
    """Return the law of the noise on each gap of a stratum, of a mechanism that adds it there."""
    n0 = _smaller_group(stratum, shares)
    proxy = batch.metric if find_metric(batch.metric).of_means else "abs_sp"
    about = Batch(proxy, n0, stratum.people - n0, batch.queries, epsilon, delta, shares=shares)
    law = MECHANISM_LAWS[mechanism].error(about)
    assert law is not None, "what adds noise has a law"
    return law


def noise_on_sums(
    stratum: Stratum,
    mechanism: str,
    epsilon: float,
    delta: float,
    size_of: Callable[[Law], float],
    models: int | None = None,
) -> tuple[float, NDArray[np.float64]]:
    """Return the squared size of the noise on N0, and of that on each sum, the part of N0's in it included.

    Parameters
    ----------
    mechanism : str
        One that adds noise to N0 and to sums, by its own law for each or by cubes.
    size_of : callable
        What counts as a law's size, such as `noise_reach`.
    models : int, optional
        How many of the first sums to look at; all where it is left out.

    Returns
    -------
    tuple of float and ndarray of float64
        The latter in the shape of the sums, (models,).
    """
    values, means, k = stratum.inside[:models], stratum.means[:models], len(stratum.values)
    if MECHANISM_LAWS[mechanism].noise_on == "cube":
        told = coordinates(values, 2.0**-20)
        cube = cube_scales(len(told.steps), epsilon)
        of_one = size_of(CubeNoise(cube.scale, max(cube.sides, 1))) ** 2
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
    """Return how many are taken to be disadvantaged: `SHARE` of the people, as far as groups may be so small."""
    n, least = stratum.people, shares.minimum_group
    return min(max(least, round(SHARE * n)), n - least)
