"""The distribution, by draws, of answers that `recommended` shrinks towards 0 where noise hides gaps.

How far an answer moves depends on all answers of its batch (`fairwall.laws.counts`), so its distribution depends on the
other models too. Two cases are drawn: the other models equal the judged one, or they have no gap at all, which moves
the judged one farthest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.counts import expected_in_batches
from fairwall.laws.noise import Gaussian
from sim.planning.counted import CountedGap


@dataclass(frozen=True)
class ShrunkGap:
    """The distribution of a stratum's released gap, for one of m models; ``counted`` is the one before shrinking.

    The batch's other models have the same sums if ``others_alike``, else no gap.
    """

    counted: CountedGap
    queries: int
    others_alike: bool

    @property
    def numbers(self) -> int:
        """Number of answers that one draw needs."""
        return self.queries

    def draw(self, sum0: float, sum1: float, generator: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draw released gaps, shape (size,)."""
        n0, noise = self.counted.n0, self.counted.noise.sums
        n, total, m = n0 + self.counted.n1, sum0 + sum1, self.queries
        sums = np.full(m, sum0 if self.others_alike else total * n0 / n)
        sums[0] = sum0
        sizes = self.counted.draw_sizes(generator, size)
        centred = sums - n0 / 2 + noise.sample(generator, (size, m))
        # As `fairwall.laws.counts.shrunk_sums`, for many batches at once.
        rate, widest = total / n, sizes * (n - sizes) / n
        by_chance = (sizes * (rate - 0.5))[:, np.newaxis]
        spread = np.sqrt(rate * (1 - rate) * sizes * (n - sizes) / (n - 1))
        moved = by_chance[:, 0].copy()
        if 0 < rate < 1:
            spreads = np.broadcast_to(spread[:, np.newaxis], centred.shape)
            gaussian = isinstance(noise, Gaussian)
            moved += expected_in_batches(centred - by_chance, spreads, widest, noise.scale, gaussian=gaussian)[:, 0]
        x = np.clip(moved + sizes / 2, np.maximum(0.0, total - (n - sizes)), np.minimum(total, sizes))
        return np.asarray((total - x) / (n - sizes) - x / sizes)
