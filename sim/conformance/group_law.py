r"""What the noise on counts by group must be: rows that sum up to 0, as `GroupTable` has their law.

Of a row z of k numbers P(z) is in proportion to e^(-rate (|z_1| + ... + |z_k|)). Given z_1 .. z_{j-1}, z_j has the law
e^(-rate |z|) times that of what the k - j others sum up to, at minus all before them. A draw between P(less) and P(not
more) makes each of the first k - 1 numbers of every row uniform, and independent of all others: see
`sim.conformance.survey`.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_COARSEST = 0.05
"""Noise of a smaller rate is looked at on a grid of this part of its scale."""

_AT_ONCE = 1 << 20


def uniform(noise: Array, rate: float) -> Array:
    """Map noise, whole numbers of shape (rows, groups), to numbers that are uniform, shape (rows, groups - 1)."""
    rng = np.random.default_rng()  # not seeded: what is tested must not be able to tell it in advance
    if rate < _COARSEST:
        noise, rate = np.floor(noise * (rate / _COARSEST) + rng.random(noise.shape)), _COARSEST
    rows, groups = noise.shape
    reach = math.ceil((45 + 6 * math.sqrt(2 * groups)) / rate)
    values = np.arange(-reach, reach + 1)
    own = np.exp(-rate * np.abs(values))
    transformed = np.fft.fft(np.fft.ifftshift(own / own.sum()))
    steps = np.clip(noise, -reach, reach).astype(np.int64)
    found = np.empty((rows, groups - 1))
    block = max(1, _AT_ONCE // len(values))
    for place in range(groups - 1):
        others = np.maximum(np.fft.fftshift(np.fft.ifft(transformed ** (groups - 1 - place)).real), 0.0)
        before = steps[:, :place].sum(axis=1)
        for start in range(0, rows, block):
            here = slice(start, start + block)
            at = np.clip(reach - before[here, np.newaxis] - values, 0, 2 * reach)
            likely = own * others[at]
            below = np.cumsum(likely, axis=1)
            each, drawn = np.arange(len(likely)), steps[here, place] + reach
            up = below[each, drawn]
            found[here, place] = (up - rng.random(len(up)) * likely[each, drawn]) / below[:, -1]
    return found
