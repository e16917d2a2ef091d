"""How wide guaranteed intervals of a batch's answers will be, by its predictions: nobody looks at A.

An interval is as wide as the noise on N0 and on a sum moves a gap, to first order: nu' e0 and e1, over h = N0 N1 / n
(`compliance.intervals.inversion`). The reaches of both are put together as of independent errors, at `SHARE`.
"""

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.batch import AskedBatch, Stratum
from fairwall.laws.counts import gaussian_scales, laplace_scales
from fairwall.laws.cube import CubeNoise, coordinates, cube_scales
from fairwall.laws.gaussian import gaussian_multiplier
from fairwall.laws.mechanisms import MECHANISM_LAWS, Batch
from fairwall.laws.metric import find_metric
from fairwall.laws.noise import Gaussian, Laplace, Law
from fairwall.laws.posterior import SHARE
from fairwall.laws.response import chernoff, turned_law, turning_probability
from fairwall.laws.shares import Shares

LEVEL = 0.95


def half_width(batch: AskedBatch, mechanism: str, epsilon: float, delta: float, shares: Shares) -> float:
    """Return the half-width to expect of a gap's guaranteed interval; infinite where the mechanism promises none.

    Epsilon is above 0 and finite, the budget of the whole batch.
    """
    law = MECHANISM_LAWS[mechanism]
    if law.interval is None or law.interval.is_posterior or law.is_choice:
        return math.inf
    m, found = batch.queries, []
    for stratum in batch.strata:
        n, least = stratum.people, shares.minimum_group
        n0 = min(max(least, round(SHARE * n)), n - least)
        if law.noise_on == "gaps":
            proxy = batch.metric if find_metric(batch.metric).of_means else "abs_sp"
            noise = law.error(Batch(proxy, n0, n - n0, m, epsilon, delta, shares=shares))
            assert noise is not None, "what adds noise has a law"
            found.append(_reach(noise))
        else:
            of_sums = _reach_of_sums(stratum, mechanism, epsilon, delta)
            found.append(float(np.mean(of_sums)) * n / (n0 * (n - n0)))
    return sum(found) / len(found)


def _reach_of_sums(stratum: Stratum, mechanism: str, epsilon: float, delta: float) -> NDArray[np.float64]:
    """Return how far noise moves each model's sum, N0's part included, shape (models,)."""
    values, k, of_one = stratum.inside, len(stratum.values), MECHANISM_LAWS[mechanism]
    if of_one.noise_on == "attributes":
        turned, ones = turned_law([turning_probability(epsilon)]), np.ones((len(values), 1))
        return chernoff(stratum.people * ones, values.std(axis=1, keepdims=True), *turned, LEVEL)
    if of_one.noise_on == "cube":
        told = coordinates(values, 2.0**-20)
        cube = cube_scales(len(told.steps), epsilon)
        of_cube = CubeNoise(cube.scale, max(cube.sides, 1)).reach(LEVEL)
        of_size = of_cube if cube.size is None else _reach(Laplace(cube.size))
        return np.hypot(told.halves * of_cube, (stratum.means - told.centres) * of_size)
    kind: type[Laplace | Gaussian] = Gaussian if of_one.needs_delta else Laplace
    scales = (
        gaussian_scales(k, gaussian_multiplier(epsilon, delta)) if of_one.needs_delta else laplace_scales(k, epsilon)
    )
    return np.hypot(_reach(kind(scales.sums)), (stratum.means - 0.5) * _reach(kind(scales.size)))


def _reach(law: Law) -> float:
    """Return what noise is at most, either way, at the level."""
    match law:
        case CubeNoise():
            return law.reach(LEVEL)
        case Gaussian():
            return law.scale * NormalDist().inv_cdf((1 + LEVEL) / 2)
        case _:
            return -law.scale * math.log(1 - LEVEL)
