"""Noise from a cube on N0 and on centred sums: as `counts`, at half the noise and less for many models.

The mathematics is `fairwall.laws.cube`; what is computed from the noisy sums, and their intervals, is as for `counts`.
"""

import math
from dataclasses import dataclass

import numpy as np

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
from fairwall.laws.cube import CubeNoise, coordinates, cube_scales
from fairwall.laws.noise import Laplace


@dataclass(frozen=True)
class CubeMechanism:
    """Adds noise from one cube to N0 and to all centred sums."""

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
            # Each of N0 people was rounded, by half a step at most.
            return NoisyCounts(size, apart, told.sums(sums), law, asked.n * step / 2, told.centres, told.halves)

        return answer(question, facts, buy, shrinks=False, gaussian=False)


def cube_step(epsilon: float, people: int) -> float:
    """Return the grid's step: 2^-24 of the noise's least scale, and at most 1, in units of what one person moves."""
    return min(1.0, step_for(1 / epsilon, 24, magnitude=people))
