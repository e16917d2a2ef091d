"""The error of a group's released rate, from sampling and from noise, as standard deviations before any clamping.

A rate is the share q of a group of n people, a sample, who get a 1. Released with Laplace noise of scale 1/epsilon on
the count of ones, n being public, it has the noise sqrt(2) / (epsilon n). With local privacy, a yes or no turned over
with probability 1 - p = 1/(1 + e^epsilon) has variance p (1-p) + (2p-1)^2 q (1-q), and the share of yeses is divided by
2p-1, so that noise adds the variance p (1-p) / ((2p-1)^2 n) = 1 / (4 sinh^2(epsilon/2) n).
"""

from __future__ import annotations

import math
from collections.abc import Callable

RateError = Callable[[float, float], float]
"""The standard deviation of a rate's noise, as a function of epsilon and the number of people."""


def of_sampling(rate: float, people: float) -> float:
    """Return sqrt(q (1-q) / n) for a rate q in [0, 1]."""
    return math.sqrt(rate * (1 - rate) / people)


def of_noise(epsilon: float, people: float) -> float:
    """Return sqrt(2) / (epsilon n): Laplace noise on one count, added by a curator who holds all answers."""
    return math.sqrt(2) / (epsilon * people)


def of_local_noise(epsilon: float, people: float) -> float:
    """Return 1 / (2 sinh(epsilon/2) sqrt(n)): randomised response on each person's answer."""
    return 1 / (2 * math.sinh(epsilon / 2) * math.sqrt(people))


def noise_bound_below(epsilon: float, rate: float) -> float:
    """Return the n below which noise errs more than sampling: 2 / (epsilon^2 q (1-q)); infinite for q of 0 or 1."""
    spread = rate * (1 - rate)
    return 2 / (epsilon**2 * spread) if spread else math.inf
