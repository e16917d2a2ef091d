"""The gain of a cheat at noise, and the probability that openings detect one.

**The best of K noises.** For the largest M of K Laplace numbers of scale 1, E M is the integral of P(M > x) over x > 0
less that of P(M < x) over x < 0. Below 0 the distribution is F(x) = e^x / 2, and the second is that of e^{Kx} / 2^K:
1 / (K 2^K). Above, F(x) = u = 1 - e^{-x} / 2 and dx = du / (1 - u), so the first is the integral of
(1 - u^K) / (1 - u) = 1 + u + ... + u^(K-1) over u from 1/2 to 1. So

    E M = sum over j = 1..K of (1 - 2^-j) / j  -  2^-K / K:

3/4 of the scale for K = 2, 1.589 for 5, 2.236 for 10, 4.494 for 100. The honest answer has the first of the K noises,
of mean 0, so E M is also how far answers move; the answer is the honest one with probability 1 / K.

**Openings.** Where each request is answered dishonestly with probability f, independently, any s requests chosen
blindly include such an answer with probability 1 - (1 - f)^s.

**Statistics.** The noise of s opened answers is known; honest noise is Laplace up to the grid, which is at most 2^-20
of the scale. Its largest distance D from that distribution follows Kolmogorov's exact distribution; D is tested at
`LEVEL` only.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LEVEL = 1e-7
"""Probability of accusing an honest service because of its noise."""


def expected_shift(draws: int) -> float:
    """Return the mean of the largest of `draws` Laplace numbers, in scales."""
    numbers = np.arange(1, draws + 1)
    return float(((1 - 2.0**-numbers) / numbers).sum() - 2.0**-draws / draws)


def affected(cheat: str, strength: int, share: float) -> float:
    """Return the probability that a cheat changes the answer to a request.

    ``cheat`` is "none", "best" of ``strength`` noises, or anything else done to a ``share`` of the requests. Rows that
    are left out or relabelled move an answer unless it is rounded to the same grid step.
    """
    if cheat == "none":
        return 0.0
    return share * (1 - 1 / strength) if cheat == "best" else share


def caught(affected: float, openings: int) -> float:
    """Return the probability that at least one opening is of a changed answer."""
    return 1 - (1 - affected) ** openings


def p_value(noise: NDArray[np.float64]) -> float:
    """Return the exact Kolmogorov-Smirnov p-value of noise, shape (answers,), against Laplace noise of scale 1."""
    from scipy.stats import kstest

    return float(kstest(noise, "laplace", method="exact").pvalue)
