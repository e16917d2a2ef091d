"""Noise that is none, for tests of what a release is made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Silent:
    """Noise that is none, and is kept: what is released is exact, and says what noise there would have been."""

    def laplace(self, values: NDArray[np.float64], _scale: float, _step: float) -> NDArray[np.float64]:
        return np.zeros_like(values)

    def bernoulli_exp(self, exponents: NDArray[np.float64]) -> NDArray[np.bool_]:
        return np.ones(exponents.shape, np.bool_)


SILENT: Any = Silent()
