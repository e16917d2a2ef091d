"""Noise from a cube on N0 and on centred sums: as `counts`, at half the noise and less for many models.

The mathematics is `fairwall.laws.cube`; what is computed from the noisy sums, and their intervals, is as for `counts`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.accountant import Loss, pure
from compliance.mechanisms.counts import NoisyCounts, Stratum, answer
from compliance.mechanisms.mechanism import (
    Facts,
    Guarantee,
    Question,
    Release,
    exactly,
    require_answerable,
    require_budget,
)
from compliance.noise import Noise, step_for
from fairwall.laws.cube import Coordinates, CubeNoise, coordinates, cube_scales
from fairwall.laws.noise import Laplace, Law
from fairwall.laws.posterior import Seen, posterior

_VARIANCE_MIN = 1e-6


@dataclass(frozen=True)
class CubeMechanism:
    """Adds noise from one cube to N0 and to all centred sums.

    Parameters
    ----------
    shrinks
        Whether answers are the joint posterior mean of the batch, `fairwall.laws.posterior`.
    """

    shrinks: bool = False
    name: str = "cube"
    title: str = "noise from a cube"
    guarantee: Guarantee = "pure"

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:  # noqa: ARG002
        """Refuse nothing."""
        return None

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return epsilon, with N0 as without: what N0 does not need, the sums get."""
        require_budget(epsilon, delta)
        return pure(epsilon)

    def release(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:
        """Return possible values of the metric, and N0 as a fact. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        if math.isinf(epsilon):
            return exactly(question.gaps())

        def buy(asked: Stratum) -> NoisyCounts:
            step = cube_step(epsilon, asked.n)
            told = coordinates(np.compress(asked.members, asked.values, axis=1), step)
            scales = cube_scales(len(told.steps), epsilon, size_known=asked.known)
            # With a wider step than this draws would take long; such a scale is next to nothing, and costs less.
            scale = max(scales.scale, scales.sides * step)
            mine = np.zeros((len(told.steps), asked.members.size))
            mine[:, asked.members] = told.steps
            exact = question.records.sums_of_disadvantaged(asked.members, mine) * step
            size, law = None, CubeNoise(scale, max(scales.sides, 1))
            if scales.together:
                size, *released = noise.cube(np.append(float(asked.n0), exact), scale, step).tolist()
                sums = np.array(released)
            else:
                if scales.size is not None:
                    size = float(noise.laplace(np.array([float(asked.n0)]), scales.size, 1.0)[0])
                sums = noise.cube(exact, scale, step) if scales.sides else exact
            apart = Laplace(scales.size) if scales.size is not None else law
            expected = None
            if self.shrinks:
                expected = _expected(asked, told, step, (sums, law), None if size is None else (size, apart))
            # Each of N0 people was rounded, by half a step at most.
            return NoisyCounts(
                size, apart, told.sums(sums), law, asked.n * step / 2, told.centres, told.halves, expected
            )

        return answer(question, facts, buy, shrinks=False, gaussian=False)


def _expected(
    asked: Stratum,
    told: Coordinates,
    step: float,
    released: tuple[NDArray[np.float64], CubeNoise],
    size: tuple[float, Law] | None,
) -> Callable[[float], NDArray[np.float64]]:
    """Return what the centred sums are by the posterior, given N0."""
    people = np.compress(asked.members, asked.values, axis=1)
    means = people.mean(axis=1)
    centred = people - means[:, np.newaxis]
    sums, law = released
    rows, values, variances = told.steps * step, sums, np.full(len(sums), law.variance())
    if size is not None:
        noisy, of_size = size
        rows, values = np.vstack([rows, np.ones(asked.n)]), np.append(values, noisy)
        variances = np.append(variances, of_size.variance() if isinstance(of_size, CubeNoise) else 2 * of_size.scale**2)
    # Not so little that rounding errors decide.
    variances = np.maximum(variances, _VARIANCE_MIN)
    seen = Seen(values, rows.sum(axis=1), rows @ rows.T, centred @ rows.T, variances)

    def expected(n0: float) -> NDArray[np.float64]:
        found = posterior(centred @ centred.T, seen, n0 / asked.n, asked.n)
        nearest: NDArray[np.float64] = found.mean + n0 * (means - told.centres)
        return nearest

    return expected


def cube_step(epsilon: float, people: int) -> float:
    """Return the grid's step: 2^-24 of the noise's least scale, and at most 1, in units of what one person moves."""
    return min(1.0, step_for(1 / epsilon, 24, magnitude=people))
