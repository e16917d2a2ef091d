"""No protection: the gaps themselves."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.calibration import require_epsilon


@dataclass(frozen=True)
class Exact:
    """Answers exactly, at an infinite price."""

    name: str = "exact"

    def cost(self, epsilon: float) -> float:
        """Return infinity, whatever was asked for."""
        require_epsilon(epsilon)
        return math.inf

    def release(
        self,
        gaps: NDArray[np.float64],
        metric: str,  # noqa: ARG002
        n0: int,  # noqa: ARG002
        n1: int,  # noqa: ARG002
        epsilon: float,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> NDArray[np.float64]:
        """Return a copy of the gaps, shape (m,)."""
        require_epsilon(epsilon)
        return gaps.copy()
