r"""What a cheat at noise gains, and how often openings catch one.

**The best of K noises.** For the largest M of K Laplace numbers of scale 1, E M is the integral of P(M > x) over x > 0
less that of P(M < x) over x < 0. Below 0 the law is F(x) = e^x / 2, and the second is that of e^{Kx} / 2^K: 1 / (K
2^K). Above, F(x) = u = 1 - e^{-x} / 2 and dx = du / (1 - u), so the first is the integral of (1 - u^K) / (1 - u) = 1 +
u + ... + u^(K-1) over u from 1/2 to 1. So

    E M = sum over j = 1..K of (1 - 2^-j) / j  -  2^-K / K:

3/4 of the scale for K = 2, 1.589 for 5, 2.236 for 10, 4.494 for 100. The answer that was to be given has the first of
the K noises, of mean 0, so E M is also how far answers move; it is no other one with probability 1 / K.

**Openings.** Where each request is answered otherwise with probability f, independently, any s of them that are chosen
without looking have one among them with probability 1 - (1 - f)^s.

**Statistics.** Of s opened answers the noise is known, and honest noise has Laplace's law up to the grid, which is
2^-20 of the scale at most. Its largest distance D from the law has Kolmogorov's exact law: D is only held against it at
`LEVEL`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEVEL = 1e-7
"""How often an honest service may be accused for its noise."""


def expected_shift(draws: int) -> float:
    """Return the mean of the largest of so many Laplace numbers, in scales."""
    numbers = np.arange(1, draws + 1)
    return float(((1 - 2.0**-numbers) / numbers).sum() - 2.0**-draws / draws)


def affected(cheat: str, strength: int, share: float) -> float:
    """Return the probability that a request is answered otherwise than it would be without the cheat.

    ``cheat`` is "none", "best" of so many noises, or anything else that is done to a ``share`` of the requests. Rows
    that are left out or relabelled move an answer unless it is rounded to the same step of the grid.
    """
    if cheat == "none":
        return 0.0
    return share * (1 - 1 / strength) if cheat == "best" else share


def caught(affected: float, openings: int) -> float:
    """Return how probable it is that one of so many openings is of a request that was answered otherwise."""
    return 1 - (1 - affected) ** openings


def p_value(noise: NDArray[np.float64]) -> float:
    """Return how probable it is that Laplace noise of scale 1, shape (answers,), is as far from its law."""
    from scipy.stats import kstest

    return float(kstest(noise, "laplace", method="exact").pvalue)
