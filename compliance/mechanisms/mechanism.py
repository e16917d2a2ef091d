"""What every mechanism can do: tell its price, and answer."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Mechanism(Protocol):
    """A way to answer a batch of metric queries."""

    @property
    def name(self) -> str:
        """The key in `compliance.mechanisms.MECHANISMS` and in scenario files."""

    def cost(self, epsilon: float) -> float:
        """Return the privacy map: the budget that a batch asked for at epsilon is charged, above 0, maybe infinite.

        Neighbours differ in one person's protected attribute. Raises ValueError for epsilon <= 0 or NaN.
        """

    def release(
        self, gaps: NDArray[np.float64], metric: str, n0: int, n1: int, epsilon: float, rng: np.random.Generator
    ) -> NDArray[np.float64]:
        """Return the answers to one batch.

        Parameters
        ----------
        gaps
            The batch's exact gaps, shape (m,) with m at least 1. Secret.
        metric
            A key of `compliance.metrics.METRICS`.
        n0, n1
            Disadvantaged and advantaged people in the metric's stratum, each at least 1. Secret.
        epsilon
            Privacy budget of the whole batch, above 0; infinite for no noise.
        rng
            Where the noise comes from.

        Returns
        -------
        NDArray[np.float64]
            Shape (m,). Not bounded to the metric's range, not rounded.

        Raises
        ------
        ValueError
            For an argument out of range.
        """
