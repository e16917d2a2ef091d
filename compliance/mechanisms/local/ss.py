"""Subset selection (Ye, Barg 2018; Wang et al. 2016): several values, the true one more likely among them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.local.protocol import LocalProtocol, blocks
from compliance.noise.uniforms import Draw, bernoulli
from fairwall.laws.local import LOCAL_LAWS, Subsets

# How many numbers of each person are in use at a time, the subset aside.
_NUMBERS = 4


def _sample(law: Subsets, values: NDArray[np.int64], draw: Draw) -> NDArray[np.uint8]:
    encoded = np.empty((len(values), law.k), np.uint8)
    for rows in blocks(len(values), _NUMBERS):
        encoded[rows] = _sample_block(law, values[rows], draw).T
    return encoded


def _sample_block(law: Subsets, own: NDArray[np.int64], draw: Draw) -> NDArray[np.bool_]:
    """Sample subsets, shape (k, n): of all subsets of a size, each with the same probability.

    Selection sampling (Knuth, volume 2, Algorithm S), everybody at the same value at a time: each of those that are
    left is chosen with probability (how many are still to be chosen) / (how many are left).
    """
    chosen = np.empty((law.k, len(own)), np.bool_)
    own_in = ~bernoulli(law.missing, len(own), draw)
    wanted = (law.size - own_in).astype(np.float64)
    left = np.full(len(own), law.k - 1.0)
    for value, here in enumerate(chosen):
        is_own = own == value
        np.less(draw(len(own)) * left, wanted, out=here)
        here &= ~is_own
        wanted -= here
        left -= ~is_own
        here |= is_own & own_in
    return chosen


SS = LocalProtocol(LOCAL_LAWS["ss"], _sample)
