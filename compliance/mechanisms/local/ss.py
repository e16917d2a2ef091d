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


def _sample_block(law: Subsets, true_values: NDArray[np.int64], draw: Draw) -> NDArray[np.bool_]:
    """Return subsets, shape (k, n), each uniform among all subsets of its size.

    Selection sampling (Knuth, volume 2, Algorithm S), everybody at the same value at a time: each remaining value is
    chosen with probability (number still to be chosen) / (number remaining).
    """
    chosen = np.empty((law.k, len(true_values)), np.bool_)
    own_in = ~bernoulli(law.missing, len(true_values), draw)
    wanted = (law.size - own_in).astype(np.float64)
    left = np.full(len(true_values), law.k - 1.0)
    for value, here in enumerate(chosen):
        is_own = true_values == value
        np.less(draw(len(true_values)) * left, wanted, out=here)
        here &= ~is_own
        wanted -= here
        left -= ~is_own
        here |= is_own & own_in
    return chosen


SS = LocalProtocol(LOCAL_LAWS["ss"], _sample)
