"""Distributions of additive noise, to sample from and to evaluate.

Samples are float64 numbers. Their lowest bits are not those of a real-valued distribution, which an attacker may
exploit (Mironov, CCS 2012); a release must round to a grid that depends on public parameters alone.
"""

import math
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class NoiseDistribution(Protocol):
    """A symmetric distribution of noise around 0. Scale 0 is no noise."""

    @property
    def scale(self) -> float:
        """Unit of the noise, at least 0."""

    def log_density(self, x: ArrayLike) -> NDArray[np.float64]:
        """Return the log-density at each x, in x's shape; at scale 0 that of a point mass: 0 at 0, else -inf."""

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """Return independent draws of the given shape; at scale 0 zeros, and nothing is drawn."""

    def median_abs(self) -> float:
        """Return the median of the noise's absolute value."""


@dataclass(frozen=True)
class Scaled:
    """A `NoiseDistribution` whose density and draws are defined for scales above 0."""

    scale: float

    def __post_init__(self) -> None:
        if not 0 <= self.scale < math.inf:
            raise ValueError("the scale must be a finite number of at least 0")

    def log_density(self, x: ArrayLike) -> NDArray[np.float64]:
        """See `NoiseDistribution.log_density`."""
        x = np.asarray(x, dtype=np.float64)
        return self._log_density(x) if self.scale else np.where(x == 0, 0.0, -np.inf)

    def sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        """See `NoiseDistribution.sample`."""
        return self._sample(rng, size) if self.scale else np.zeros(size)

    def _log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        raise NotImplementedError

    def _sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        raise NotImplementedError


class Laplace(Scaled):
    """Density exp(-|x| / scale) / (2 scale)."""

    def median_abs(self) -> float:
        """Return the median of the noise's absolute value, scale * ln 2."""
        return self.scale * math.log(2)

    def variance(self) -> float:
        """Return the variance, 2 scale^2."""
        return 2 * self.scale**2

    def _log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(-np.abs(x) / self.scale - math.log(2 * self.scale))

    def _sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        return rng.laplace(0.0, self.scale, size)


class Cauchy(Scaled):
    """Density scale / (pi (x^2 + scale^2)). It has no mean: report medians."""

    def median_abs(self) -> float:
        """Return the median of the noise's absolute value, the scale."""
        return self.scale

    def _log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        # hypot, because x^2 overflows for draws that do occur.
        return np.asarray(math.log(self.scale / math.pi) - 2 * np.log(np.hypot(x, self.scale)))

    def _sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        return self.scale * rng.standard_cauchy(size)


class Gaussian(Scaled):
    """Density exp(-x^2 / (2 scale^2)) / (scale sqrt(2 pi))."""

    def median_abs(self) -> float:
        """Return the median of the noise's absolute value, scale * 0.674."""
        return self.scale * NormalDist().inv_cdf(0.75)

    def variance(self) -> float:
        """Return the variance, scale^2."""
        return self.scale**2

    def _log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(-0.5 * (x / self.scale) ** 2 - math.log(self.scale * math.sqrt(2 * math.pi)))

    def _sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        return rng.normal(0.0, self.scale, size)


class Uniform(Scaled):
    """Density 1 / (2 scale) on [-scale, scale]: the error of rounding to a grid of step 2 scale.

    For numbers that vary over many grid steps; the error is a function of the number, not noise.
    """

    def median_abs(self) -> float:
        """Return the median of the noise's absolute value, half the scale."""
        return self.scale / 2

    def _log_density(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.abs(x) <= self.scale, -math.log(2 * self.scale), -np.inf)

    def _sample(self, rng: np.random.Generator, size: int | tuple[int, ...]) -> NDArray[np.float64]:
        return rng.uniform(-self.scale, self.scale, size)
