"""Sampling of independent bits, which five of the seven protocols release."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.local.protocol import blocks
from compliance.noise.uniforms import Draw, bernoulli
from fairwall.laws.local import Bits


def sample_bits(law: Bits, values: NDArray[np.int64], draw: Draw) -> NDArray[np.uint8]:
    """Return sampled encodings, shape (n, k), of values in the law's domain, shape (n,)."""
    encoded = np.empty((len(values), law.k), np.uint8)
    for rows in blocks(len(values), law.k):
        own = values[rows]
        block = encoded[rows]
        block[:] = bernoulli(law.extra, block.size, draw).reshape(block.shape)
        block[np.arange(len(own)), own] = ~bernoulli(law.missing, len(own), draw)
    return encoded
