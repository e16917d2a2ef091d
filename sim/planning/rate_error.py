r"""How far a group's released rate is from the truth: the error of sampling, and that of noise.

A rate is the share q of a group of n people who get a 1. The people are a sample, so that it errs by
sqrt(q (1-q) / n). Released with Laplace noise of scale 1/epsilon on how many they are, n being public, it errs by
sqrt(2) / (epsilon n) more. Where each person's answer is randomised before anybody collects it (local privacy), it errs
by more: a yes or no that is turned over with probability 1 - p = 1/(1 + e^epsilon) has variance

    p (1-p) + (2p-1)^2 q (1-q),

and the share of yeses is divided by 2p-1, so that noise adds p (1-p) / ((2p-1)^2 n) = 1 / (4 sinh^2(epsilon/2) n).

All are standard deviations, before any clamping.
"""

from __future__ import annotations

import math
from collections.abc import Callable

RateError = Callable[[float, float], float]
"""The noise's error in a rate, at an epsilon and of so many people."""


def of_sampling(rate: float, people: float) -> float:
    """Return sqrt(q (1-q) / n) for a rate q in [0, 1]."""
    return math.sqrt(rate * (1 - rate) / people)


def of_noise(epsilon: float, people: float) -> float:
    """Return sqrt(2) / (epsilon n): Laplace noise on one count, added by whoever holds all answers."""
    return math.sqrt(2) / (epsilon * people)


def of_local_noise(epsilon: float, people: float) -> float:
    """Return 1 / (2 sinh(epsilon/2) sqrt(n)): randomised response, each person's answer by itself."""
    return 1 / (2 * math.sinh(epsilon / 2) * math.sqrt(people))


def noise_bound_below(epsilon: float, rate: float) -> float:
    """Return below how many people noise errs more than sampling: 2 / (epsilon^2 q (1-q)); infinite for q of 0 or 1."""
    spread = rate * (1 - rate)
    return 2 / (epsilon**2 * spread) if spread else math.inf
