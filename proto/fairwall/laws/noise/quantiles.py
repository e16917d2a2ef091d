"""Quantiles of noise, from which intervals are made and their widths predicted."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from fairwall.arrays import Floats
from fairwall.laws.noise.distributions import Cauchy, Gaussian, Laplace, NoiseDistribution
from fairwall.laws.noise.linf_ball import CubeNoise

LEVEL = 0.95
"""Least probability that a guaranteed interval holds the exact gap, for any A; for a likely interval, under a prior."""


def noise_reach(law: NoiseDistribution, level: float = LEVEL) -> float:
    """Return the bound on the noise's absolute value that holds with a probability of the level.

    ValueError for a level out of range, or a distribution without known quantiles.
    """
    if not 0 < level < 1:
        raise ValueError("the level must be above 0 and below 1")
    if isinstance(law, CubeNoise):
        return law.reach(level)
    return float(_quantiles(law, np.array([(1 + level) / 2]))[0])


def distribution(law: NoiseDistribution) -> Callable[[Floats], Floats]:
    """Return the function P(noise <= x)."""
    scale = law.scale
    match law:
        case Laplace():
            return lambda x: np.where(x < 0, 0.5 * np.exp(-np.abs(x) / scale), 1 - 0.5 * np.exp(-np.abs(x) / scale))
        case Gaussian():
            from scipy.special import ndtr

            return lambda x: np.asarray(ndtr(x / scale))
        case CubeNoise():
            return law.distribution
        case _:
            raise ValueError(f"{type(law).__name__} noise is not known")


def _quantiles(law: NoiseDistribution, probabilities: Floats) -> Floats:
    if type(law) not in INVERSES:
        raise ValueError(f"the quantiles of {type(law).__name__} noise are not known")
    return law.scale * INVERSES[type(law)](probabilities) if law.scale else np.zeros(probabilities.shape)


def _laplace(u: Floats) -> Floats:
    inverse: Floats = -np.sign(u - 0.5) * np.log1p(-2 * np.abs(u - 0.5))
    return inverse


def _gaussian(u: Floats) -> Floats:
    from scipy.special import ndtri

    inverse: Floats = ndtri(u)
    return inverse


def _cauchy(u: Floats) -> Floats:
    inverse: Floats = np.tan(math.pi * (u - 0.5))
    return inverse


INVERSES: dict[type, Callable[[Floats], Floats]] = {
    Laplace: _laplace,
    Gaussian: _gaussian,
    Cauchy: _cauchy,
}
