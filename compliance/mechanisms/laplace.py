"""The Laplace mechanism on the global sensitivity (Dwork, McSherry, Nissim, Smith 2006)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.calibration import laplace_law, require_epsilon


@dataclass(frozen=True)
class LaplaceMechanism:
    """Adds independent Laplace noise whose scale is public: `fairwall.laws.calibration.laplace_law`."""

    name: str = "laplace"

    def cost(self, epsilon: float) -> float:
        """Return epsilon."""
        require_epsilon(epsilon)
        return epsilon

    def release(
        self, gaps: NDArray[np.float64], metric: str, n0: int, n1: int, epsilon: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return the gaps with noise, shape (m,). See `Mechanism.release`."""
        return gaps + laplace_law(metric, n0 + n1, gaps.size, epsilon).sample(rng, gaps.size)
