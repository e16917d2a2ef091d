r"""Bounds on how improbable observed noise is for a sound server; all tests of noise share them.

Noise comes as numbers c = 2u - 1, uniform on [-1, 1] if it has its distribution (`sim.conformance.promise`). -ln(1 -
|c|) is then exponential with mean 1. By Chernoff's bound the mean of N such numbers is at most a < 1 (at least a > 1)
with a probability of at most (a e^{1-a})^N, and a share of N independent events has N KL(share, probability) > ln(2/p)
with a probability of at most p. An empirical distribution is off by more than sqrt(ln(2/p) / 2N) with a probability of
at most p (Dvoretzky, Kiefer, Wolfowitz, with Massart's constant).
"""

from __future__ import annotations

import math

import numpy as np

from fairwall.arrays import Floats

Array = Floats

_NEAR = 4e-6
"""Largest |c| that counts as no noise; wider than a grid of 2^-20 of the scale."""


def sizes(centred: Array) -> Array:
    """Map c to numbers that are exponential with mean 1."""
    found: Array = -np.log1p(-np.minimum(np.abs(centred), 1 - 1e-16))
    return found


def chernoff(mean: float, size: int) -> float:
    """Return a bound on the probability that `size` exponential numbers have such a mean, or one farther from 1."""
    return math.exp(size * (math.log(mean) + 1 - mean)) if mean > 0 else 0.0


def divergence(share: float, expected: float) -> float:
    """Return the Kullback-Leibler divergence of two coins: such a share has p < exp(-size divergence)."""
    parts = ((share, expected), (1 - share, 1 - expected))
    return sum(one * math.log(one / other) if other else math.inf for one, other in parts if one)


def poisson(count: int, expected: float) -> float:
    """Return Chernoff's bound on the probability of `count` or more events, where `expected` are expected."""
    if count <= expected:
        return 1.0
    return math.exp(count - expected - count * math.log(count / expected)) if expected > 0 else 0.0


def bare(centred: Array, p: float) -> int:
    """Return how many numbers have no noise; 0 if as many come by chance with a probability of at least p."""
    found, near = int((np.abs(centred) < _NEAR).sum()), len(centred) * _NEAR
    # k of N have a probability of at most (N q)^k / k!.
    return found if found and near**found / math.factorial(min(found, 100)) < p else 0


def off_law(centred: Array, p: float) -> float:
    """Return how far numbers, or their distances from 0, are from uniform; 0 if that comes by chance."""
    size = len(centred)
    steps = np.arange(size + 1) / size
    # Folded, they are twice as far from uniform if the symmetric distribution is a wrong one.
    both = np.sort(centred + 1) / 2, np.sort(np.abs(centred))
    off = max(float(max(np.max(steps[1:] - ranks), np.max(ranks - steps[:-1]))) for ranks in both)
    return off if off > math.sqrt(math.log(2 / p) / (2 * size)) else 0.0


def is_unlikely_sum(total: float, variance: float, p: float) -> bool:
    """Return whether independent numbers in [-1, 1] of mean 0 hardly ever have such a sum (Bernstein's inequality)."""
    return total**2 / (2 * (variance + abs(total) / 3)) > math.log(2 / p)


def is_unlikely_product(one: Array, other: Array, p: float) -> bool:
    """Return whether independent numbers, uniform on [-1, 1], hardly ever have such products.

    Made normal, their squared cosine has the distribution Beta(1/2, (n-1)/2), as one of two rows points anywhere.
    """
    from scipy.special import betainc, ndtri

    if len(one) == 1:
        return False
    first, second = (ndtri(np.clip((1 + each) / 2, 1e-12, 1 - 1e-12)) for each in (one, other))
    return bool(betainc((len(one) - 1) / 2, 0.5, 1 - (first @ second) ** 2 / (first @ first * (second @ second))) < p)


def pairs_at_most(size: int, near: float, p: float) -> float:
    """Return the most of `size` uniform numbers of [0, 1] that lie within `near` of the next larger one."""
    return size * near * size + math.sqrt(2 * size * math.log(1 / p))
