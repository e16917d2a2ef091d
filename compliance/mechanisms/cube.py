"""Noise from a cube on N0 and on centred sums: as `counts`, at half the noise and less for many models.

The mathematics is `fairwall.laws.cube`; what is computed from the noisy sums, and their intervals, is as for `counts`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.counts import Asked, NoisyCounts, answer
from compliance.mechanisms.mechanism import Facts, Guarantee, Question, Release
from compliance.mechanisms.promise import Noisy
from compliance.noise.sampling import Noise, step_for
from fairwall.laws.batch import Stratum
from fairwall.laws.cube import Coordinates, CubeNoise, cube_scales
from fairwall.laws.noise import Laplace
from fairwall.laws.posterior import Seen, posterior

_VARIANCE_MIN = 1e-6


@dataclass(frozen=True)
class CubeMechanism(Noisy):
    """Adds noise from one cube to N0 and to all centred sums.

    Parameters
    ----------
    shrinks : bool
        Whether answers are the joint posterior mean of the batch, `fairwall.laws.posterior`.
    """

    shrinks: bool = False
    name: str = "cube"
    title: str = "noise from a cube"
    guarantee: Guarantee = "pure"

    def noisy(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:  # noqa: ARG002
        """Return possible values of the metric, and N0 as a fact. See `Noisy.noisy`."""

        def buy(asked: Asked) -> NoisyCounts:
            step = cube_step(epsilon, asked.n)
            told = asked.stratum.coordinates(step)
            scales = cube_scales(told.sides, epsilon, size_known=asked.known)
            if asked.stratum.by_sums:
                exact = told.of_sums(asked.n0, asked.sums)
            else:
                exact = question.sums_of_steps(asked.stratum, told.pieces(asked.stratum.pieces())) * step
            law = scales.law if scales.law.stair else drawn_law(scales.scale, scales.sides, step)
            size, least = None, least_size(law, step)
            if scales.together:
                size, *released = noise.cube(np.append(float(asked.n0), exact), law.scale, step, least).tolist()
                sums = np.array(released)
            else:
                if scales.size is not None:
                    size = float(noise.laplace(np.array([float(asked.n0)]), scales.size, 1.0)[0])
                sums = noise.cube(exact, law.scale, step, least) if scales.sides else exact
            apart = Laplace(scales.size) if scales.size is not None else law
            expected = None
            if self.shrinks:
                few = question.asked.few.strata[question.asked.strata.index(asked.stratum)]
                expected = _expected(
                    few, told, (sums, law), None if size is None else (size, apart), asked.stratum.means
                )
            # Each of N0 people was rounded, by half a step at most.
            return NoisyCounts(
                size,
                apart,
                told.sums(sums),
                law,
                asked.n * step / 2 * told.halves,
                told.centres,
                told.halves,
                expected,
                scales.together,
            )

        return answer(question, facts, buy, shrinks=False, gaussian=False)


def _expected(
    stratum: Stratum,
    told: Coordinates,
    released: tuple[NDArray[np.float64], CubeNoise],
    size: tuple[float, Laplace | CubeNoise] | None,
    means: NDArray[np.float64],
) -> Callable[[float], NDArray[np.float64]]:
    """Return what the centred sums are by the posterior, given N0.

    How models go together, few of very many people tell, with the means of all.
    """
    sums, law = released
    values, variances = sums, np.full(len(sums), law.variance())
    if size is not None:
        noisy, of_size = size
        values, variances = np.append(values, noisy), np.append(variances, of_size.variance())
    # Not so little that rounding errors decide.
    variances = np.maximum(variances, _VARIANCE_MIN)
    ones, products, cross = np.zeros(len(values)), np.zeros((len(values),) * 2), np.zeros((stratum.rows, len(values)))
    for _, block in stratum.blocks():
        rows = told.of(block) * told.step
        if size is not None:
            rows = np.vstack([rows, np.ones(block.shape[1])])
        ones += rows.sum(axis=1)
        products += rows @ rows.T
        cross += stratum.centre(block) @ rows.T
    many = stratum.stands_for
    seen = Seen(values, many * ones, many * products, math.sqrt(many) * cross, variances)

    def expected(n0: float) -> NDArray[np.float64]:
        found = posterior(stratum.gram, seen, n0 / stratum.people, stratum.people)
        nearest: NDArray[np.float64] = found.mean + n0 * (means - told.centres)
        return nearest

    return expected


def drawn_law(scale: float, sides: int, step: float) -> CubeNoise:
    """Return the noise that is drawn: of this scale, or a larger one, which costs less."""
    # With a wider step than this draws would take long; such a scale is next to nothing.
    return CubeNoise(max(scale, sides * step), max(sides, 1))


def least_size(law: CubeNoise, step: float) -> int:
    """Return how many steps a staircase's least size has, where one person moves by 1; 0 for sizes of all kinds."""
    return max(1, round(law.gamma / step)) if law.stair else 0


def cube_step(epsilon: float, people: int) -> float:
    """Return the grid's step: 2^-24 of the noise's least scale, and at most 1, in units of what one person moves."""
    return min(1.0, step_for(1 / epsilon, 24, magnitude=people))
