"""Sources of noise for tests: one notes what it is asked for, one adds none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.noise.sampling import Noise


@dataclass(frozen=True)
class Asked:
    law: str
    values: NDArray[np.float64]
    scale: float
    step: float
    least: int = 0


@dataclass
class Spy:
    """Notes what noise a mechanism asks for, and passes it on."""

    noise: Noise
    asked: list[Asked] = field(default_factory=list)

    def laplace(self, values: NDArray[np.float64], scale: float, step: float) -> NDArray[np.float64]:
        self.asked.append(Asked("laplace", values, scale, step))
        return self.noise.laplace(values, scale, step)

    def gaussian(self, values: NDArray[np.float64], sigma: float, step: float) -> NDArray[np.float64]:
        self.asked.append(Asked("gaussian", values, sigma, step))
        return self.noise.gaussian(values, sigma, step)

    def cauchy(self, values: NDArray[np.float64], scale: float, step: float) -> NDArray[np.float64]:
        self.asked.append(Asked("cauchy", values, scale, step))
        return self.noise.cauchy(values, scale, step)

    def cube(self, values: NDArray[np.float64], scale: float, step: float, least: int = 0) -> NDArray[np.float64]:
        self.asked.append(Asked("cube", values, scale, step, least))
        return self.noise.cube(values, scale, step, least)

    def __getattr__(self, name: str) -> object:
        return getattr(self.noise, name)


class Silent:
    """Noise that is none, and is kept: what is released is exact, and says what noise there would have been."""

    def laplace(self, values: NDArray[np.float64], _scale: float, _step: float) -> NDArray[np.float64]:
        return np.zeros_like(values)

    def bernoulli_exp(self, exponents: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.ones(exponents.shape, np.bool_)


SILENT: Any = Silent()
