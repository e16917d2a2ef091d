"""The distribution of one stratum's released gap from noisy counts, in closed form for decisions of 0 and 1.

`compliance.mechanisms.counts` releases N0 as a whole number s in 1 .. n-1 and the centred sum with noise Z. The sum
over the disadvantaged becomes x = clip(S0 + (s - N0)/2 + Z, a, b), where decisions allow a = max(0, T - (n-s)) to b =
min(T, s), and T = S0 + S1 is the public total. The released gap

    g' = (T - x)/(n - s) - x/s = T/(n-s) - x n/(s (n-s))

falls as x grows. Given s, g' lies in [low, high] where x lies between two numbers, whose probability is that of Z
between two others, or of being clipped. The law of g' is the mixture over s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.noise.sampling import GAUSSIAN_FINENESS, ROUNDING_STEPS, step_for
from fairwall.laws.counts import gaussian_scales, laplace_scales
from fairwall.laws.gaussian import gaussian_multiplier, gridded_multiplier
from fairwall.laws.noise import Gaussian, Laplace, NoiseDistribution
from sim.planning.added import cumulative
from sim.planning.batch import PlannedBatch
from sim.planning.worst import Array

_REACH = 21.0
"""Truncation of the noise on N0, in scales; noise beyond has a probability below 1e-9."""

_ONE_BY_ONE = 240
_BLOCKS = 120

_TOLERANCE = 1e-9
"""Tolerance at the ends of an interval, so that the last bits of a clipped answer do not decide."""


@dataclass(frozen=True)
class CountedNoise:
    """The noise of a stratum's counts: on N0, before rounding, and on each centred sum."""

    size: NoiseDistribution
    sums: NoiseDistribution


def counted_noise(batch: PlannedBatch) -> CountedNoise:
    """Return the noise that compliance adds to the counts of a stratum, for `counts` and `counts-gaussian`."""
    sums, epsilon = batch.queries, batch.epsilon
    people = max(sum(groups) for groups in batch.strata)
    if batch.law.needs_delta:
        about = gaussian_scales(sums, gaussian_multiplier(epsilon, batch.delta))
        steps = [step_for(scale, GAUSSIAN_FINENESS, people) for scale in (about.size, about.sums)]
        fewest = min(about.size / steps[0], about.sums / steps[1])
        multiplier = gridded_multiplier(epsilon, batch.delta, sums + 1, fewest)
        scales = gaussian_scales(sums, multiplier, steps=ROUNDING_STEPS * steps[1])
        return CountedNoise(Gaussian(scales.size), Gaussian(scales.sums))
    step = step_for(laplace_scales(sums, epsilon).sums, magnitude=people)
    scales = laplace_scales(sums, epsilon, steps=ROUNDING_STEPS * step)
    return CountedNoise(Laplace(scales.size), Laplace(scales.sums))


@dataclass(frozen=True, eq=False)
class CountedGap:
    """The distribution of a stratum's released gap, by the noise on its counts; one draw needs ``numbers`` answers.

    ``sizes`` and ``chances`` are the possible released values of N0 and their probabilities.
    """

    n0: int
    n1: int
    noise: CountedNoise
    sizes: Array
    chances: Array
    numbers: int = 1

    @classmethod
    def of(cls, n0: int, n1: int, noise: CountedNoise) -> CountedGap:
        """Return the law with the possible released values of N0: whole numbers, or blocks if there are very many."""
        n, reach = n0 + n1, math.ceil(_REACH * noise.size.scale) + 1
        low, high = max(1, n0 - reach), min(n - 1, n0 + reach)
        last = np.arange(low, high + 1)
        if len(last) > _ONE_BY_ONE:
            # Close together near the ends, where 1/s and 1/(n-s) change most.
            near = np.unique(np.rint(np.geomspace(1, high - low, _BLOCKS)).astype(np.int64))
            even = np.rint(np.linspace(low, high, _BLOCKS)).astype(np.int64)
            last = np.unique(np.concatenate([[low, high - 1, high], even, low + near, high - near]))
        first = np.concatenate([[low], last[:-1] + 1])
        below = _at_most(noise.size, last[:-1] - n0)
        chances = np.diff(np.concatenate([[0.0], below, [1.0]]))
        return cls(n0, n1, noise, (first + last) / 2, chances)

    def inside(self, low: Array, high: Array, sum0: Array, sum1: Array) -> Array:
        """Return P(low <= released gap <= high), or 0 if low > high, for the groups' sums of ones; all shapes (k,)."""
        s, n = self.sizes, self.n0 + self.n1
        total = (sum0 + sum1)[:, np.newaxis]
        least, most = np.maximum(0.0, total - (n - s)), np.minimum(total, s)
        centre = sum0[:, np.newaxis] + (s - self.n0) / 2
        per_gap = s * (n - s) / n
        level = total / (n - s)
        top = (level - (low[:, np.newaxis] - _TOLERANCE)) * per_gap
        bottom = (level - (high[:, np.newaxis] + _TOLERANCE)) * per_gap
        up_to = np.where(top >= most, 1.0, np.where(top < least, 0.0, cumulative(self.noise.sums, top - centre)))
        below = np.where(
            bottom <= least, 0.0, np.where(bottom > most, 1.0, cumulative(self.noise.sums, bottom - centre))
        )
        return np.asarray(np.maximum(up_to - below, 0.0) @ self.chances)

    def draw(self, sum0: float, sum1: float, generator: np.random.Generator, size: int) -> Array:
        """Draw released gaps, shape (size,)."""
        n, total = self.n0 + self.n1, sum0 + sum1
        s = self.draw_sizes(generator, size)
        noisy = sum0 + (s - self.n0) / 2 + self.noise.sums.sample(generator, size)
        x = np.clip(noisy, np.maximum(0.0, total - (n - s)), np.minimum(total, s))
        return np.asarray((total - x) / (n - s) - x / s)

    def draw_sizes(self, generator: np.random.Generator, size: int) -> Array:
        """Draw released values of N0, shape (size,)."""
        if isinstance(self.noise.size, Laplace):
            up, down = generator.geometric(-math.expm1(-1 / self.noise.size.scale), (2, size))
            moved = (up - down).astype(np.float64)
        else:
            moved = np.rint(self.noise.size.sample(generator, size))
        return np.asarray(np.clip(self.n0 + moved, 1, self.n0 + self.n1 - 1))


def _at_most(law: NoiseDistribution, moved: NDArray[np.int64]) -> Array:
    """Return P(N0 moves by at most ``moved``), for discrete Laplace or a rounded Gaussian."""
    if isinstance(law, Laplace):
        # P(D > d) = q^(d+1) / (1+q) for d >= 0, q = exp(-1/scale); the rest by symmetry.
        rate, far = 1 / law.scale, np.where(moved >= 0, moved + 1, -moved)
        tail = np.exp(-rate * far) / (1 + math.exp(-rate))
        return np.where(moved >= 0, 1 - tail, tail)
    return cumulative(law, np.asarray(moved + 0.5))
