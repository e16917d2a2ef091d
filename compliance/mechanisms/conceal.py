"""Attribute-Conceal: Cauchy noise on the smooth sensitivity (Hamman, Chen, Dutta, FAccT 2023, Algorithm 3)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.calibration import conceal_law, require_epsilon


@dataclass(frozen=True)
class Conceal:
    """Adds independent Cauchy noise: `fairwall.laws.calibration.conceal_law`, the paper's with S put right.

    The scale depends on the secret counts and must never leave compliance.
    """

    name: str = "conceal"

    def cost(self, epsilon: float) -> float:
        """Return epsilon: the promise, not the smaller loss that `fairwall.laws.calibration.conceal_loss` computes.

        That loss depends on the secret counts, so it is no price.
        """
        require_epsilon(epsilon)
        return epsilon

    def release(
        self, gaps: NDArray[np.float64], metric: str, n0: int, n1: int, epsilon: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return the gaps with noise, shape (m,). See `Mechanism.release`."""
        return gaps + conceal_law(metric, n0, n1, gaps.size, epsilon).sample(rng, gaps.size)
