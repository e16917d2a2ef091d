r"""How improbable what was seen is for a sound server: the bounds that all tests of noise share.

Noise comes as numbers c = 2u - 1, uniform on [-1, 1] if it has its law (`sim.conformance.promise`). -ln(1 - |c|) is
then exponential with mean 1. By Chernoff's bound the mean of N such numbers is at most a < 1 (at least a > 1) with a
probability of at most (a e^{1-a})^N, and a share of N independent events is as far from its probability as
N KL(share, probability) > ln(2/p) with one of at most p. An empirical distribution is off by more than
sqrt(ln(2/p) / 2N) with a probability of at most p (Dvoretzky, Kiefer, Wolfowitz, with Massart's constant).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_NEAR = 4e-6
"""Wider than a grid of 2^-20 of the scale."""


def sizes(centred: Array) -> Array:
    """Map c to numbers that are exponential with mean 1."""
    found: Array = -np.log1p(-np.minimum(np.abs(centred), 1 - 1e-16))
    return found


def chernoff(mean: float, size: int) -> float:
    """Bound the probability that so many exponential numbers have such a mean, or one farther from 1."""
    return math.exp(size * (math.log(mean) + 1 - mean)) if mean > 0 else 0.0


def divergence(found: float, expected: float) -> float:
    """Return Kullback and Leibler's, of two coins: a share as far from what is expected has p < exp(-size of it)."""
    parts = ((found, expected), (1 - found, 1 - expected))
    return sum(one * math.log(one / other) if other else math.inf for one, other in parts if one)


def poisson(count: int, expected: float) -> float:
    """Bound the probability of so many or more, where so many are expected, by Chernoff's inequality."""
    if count <= expected:
        return 1.0
    return math.exp(count - expected - count * math.log(count / expected)) if expected > 0 else 0.0


def bare(centred: Array, p: float) -> int:
    """Count numbers without noise; 0 where as many come by chance, with a probability of at least p."""
    found, near = int((np.abs(centred) < _NEAR).sum()), len(centred) * _NEAR
    # k of N with a probability of at most (N q)^k / k!.
    return found if found and near**found / math.factorial(min(found, 100)) < p else 0


def off_law(centred: Array, p: float) -> float:
    """Return how far from uniform numbers are, or their distances from 0; 0 where that comes by chance."""
    size = len(centred)
    steps = np.arange(size + 1) / size
    # Folded, they are twice as far from uniform where a symmetric law is not the right one.
    both = np.sort(centred + 1) / 2, np.sort(np.abs(centred))
    off = max(float(max(np.max(steps[1:] - ranks), np.max(ranks - steps[:-1]))) for ranks in both)
    return off if off > math.sqrt(math.log(2 / p) / (2 * size)) else 0.0


def is_unlikely_sum(total: float, variance: float, p: float) -> bool:
    """Say whether independent numbers in [-1, 1] of mean 0 would not have such a sum: Bernstein's inequality."""
    return total**2 / (2 * (variance + abs(total) / 3)) > math.log(2 / p)


def is_unlikely_product(one: Array, other: Array, p: float) -> bool:
    """Say whether numbers that are uniform on [-1, 1], and independent of each other, would not have such products.

    Made normal, one of two rows points anywhere: the square of its cosine to the other has the law Beta(1/2, (n-1)/2).
    """
    from scipy.special import betainc, ndtri

    if len(one) == 1:
        return False
    first, second = (ndtri(np.clip((1 + each) / 2, 1e-12, 1 - 1e-12)) for each in (one, other))
    return bool(betainc((len(one) - 1) / 2, 0.5, 1 - (first @ second) ** 2 / (first @ first * (second @ second))) < p)


def pairs_at_most(size: int, near: float, p: float) -> float:
    """Return how many of so many uniform numbers of [0, 1] lie so near to the next larger one, at most."""
    return size * near * size + math.sqrt(2 * size * math.log(1 / p))
