"""Posterior variances by the formulas as they stand, with matrices as large as there are sums."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fairwall.laws.choice.posterior import SHARE, NoisyObservations, directions_of, structures


def predicted_variances(products: NDArray[np.float64], seen: NoisyObservations, people: int) -> list[float]:
    """Return the mean posterior variance of u at `SHARE` for each structure; `seen.values` are not looked at."""
    squares, directions = directions_of(products)
    spread, cross, found = SHARE * (1 - SHARE), directions.T @ seen.cross, []
    noise = np.diag(seen.noise) if seen.noise.ndim == 1 else seen.noise
    for flatness, strength in structures(squares, len(products), SHARE, people):
        covariance = spread * (seen.gram + cross.T * (strength * squares**-flatness) @ cross) + noise
        kernel = 1 + strength * squares ** (1 - flatness)
        gain = spread * kernel[:, np.newaxis] * cross
        told = float(np.trace(gain @ np.linalg.solve(covariance, gain.T)))
        found.append((spread * float(kernel @ squares) - told) / len(products))
    return found
