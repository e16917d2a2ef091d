r"""A lower bound on a model's epsilon, from an adversary's guesses about canaries, with one training each.

Each of m canaries is in the training set by an independent fair coin. If training is epsilon-private then, whatever the
guesser's choices, the number of right ones among its r guesses is at most Binomial(r, e^eps / (1 + e^eps)) in the
stochastic order. With a delta the probability of v or more right ones is at most

    P[B >= v] + 2 m delta max over i = 1..m of P[v > B >= v - i] / i

(Steinke, Nasr and Jagielski, NeurIPS 2023, Theorem 5.2). Every epsilon for which that is below 5% is refuted. Canaries
of several trainings are canaries of one mechanism that trains them all, so they are counted together.
"""

from __future__ import annotations

import math

LEVEL = 0.05
_EPSILON_MAX = 50.0
_BISECTIONS = 40


def epsilon_refuted(canaries: int, guessed: int, right: int, delta: float) -> float:
    """Return the largest epsilon that the guesses refute at 5%, a lower bound on the true one, or 0.

    Of `canaries`, `guessed` were guessed about, and `right` of these guesses are right; `delta` is the promised one.
    """
    if not 0 <= right <= guessed <= canaries:
        raise ValueError("there are no more right guesses than guesses, and no more guesses than canaries")
    if probability(canaries, guessed, right, 0.0, delta) > LEVEL:
        return 0.0
    low, high = 0.0, _EPSILON_MAX
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if probability(canaries, guessed, right, middle, delta) <= LEVEL else (low, middle)
    return low


def probability(canaries: int, guessed: int, right: int, epsilon: float, delta: float) -> float:
    """Return a bound on the probability of `right` or more right guesses if training is (epsilon, delta)-private."""
    if right == 0:
        return 1.0
    import numpy as np  # imported here, as scipy is: recording alone needs neither
    from scipy.stats import binom

    sure = 1 / (1 + math.exp(-epsilon))
    below = np.cumsum(binom.pmf(right - np.arange(1, right + 1), guessed, sure))
    beyond = float((below / np.arange(1, right + 1)).max())
    return min(1.0, float(binom.sf(right - 1, guessed, sure)) + 2 * canaries * delta * beyond)
