"""Thresholding with histogram encoding (Wang et al. 2017): one-hot numbers with Laplace noise, and a threshold.

The side that thresholds decides what is released, and what it costs. `THE` releases the bits, which are independent and
are sampled as such: a noisy number lies on the wrong side of the threshold with the tail's probability. `THE_SERVER`
releases the numbers.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.local.bits import sample_bits
from compliance.mechanisms.local.protocol import LocalProtocol, blocks
from compliance.noise.sampling import step_for
from compliance.noise.uniforms import Draw
from fairwall.laws.local import LOCAL_LAWS, Numbers


def _sample_numbers(law: Numbers, values: NDArray[np.int64], draw: Draw) -> NDArray[np.float64]:
    """Sample numbers on a public grid, which has 0 and 1, so that their last bits reveal nothing of the value.

    Rounding is post-processing, and in the tails, where the loss is epsilon, it changes no ratio.
    """
    scale = 2 / law.epsilon
    step = step_for(scale)
    encoded = np.empty((len(values), law.k))
    for rows in blocks(len(values), law.k):
        own = values[rows]
        block = encoded[rows]
        block[:] = np.rint(_laplace(block.size, draw) * (scale / step)).reshape(block.shape) * step
        block[np.arange(len(own)), own] += 1
        block += 0.0  # -0.0 and 0.0 are one number
    return encoded


def _laplace(size: int, draw: Draw) -> NDArray[np.float64]:
    # One more bit for the sign, and 52 more for a tail that has no gaps where noise is ever seen.
    more = 2 * draw(size)
    positive = more >= 1
    uniform = draw(size) + (more - positive + 2.0**-53) * 2.0**-53
    noise: NDArray[np.float64] = np.log(uniform) * (1 - 2.0 * positive)
    return noise


THE = LocalProtocol(LOCAL_LAWS["the"], sample_bits)
THE_SERVER = LocalProtocol(LOCAL_LAWS["the-server"], _sample_numbers)
