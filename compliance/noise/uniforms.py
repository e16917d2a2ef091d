"""Randomness for sanitising: uniform numbers of 53 bits, seeded or from the operating system."""

from __future__ import annotations

import math
import os
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Draw = Callable[[int], NDArray[np.float64]]
"""Maps a size to that many independent uniform multiples of 2^-53 in [0, 1)."""


def seeded(seed: bytes) -> Draw:
    """Return draws that replay, from a numpy generator. For games, not for service.

    `seed`: 32 bytes, or ValueError; kept as secret as what is drawn with them.
    """
    if len(seed) != 32:
        raise ValueError("a seed has 32 bytes")
    return np.random.default_rng(int.from_bytes(seed, "big")).random


def system() -> Draw:
    """Return draws from the operating system's generator."""
    return _from_system


def bernoulli(probability: float, size: int, draw: Draw) -> NDArray[np.bool_]:
    """Return independent draws, True with exactly this probability however small: a float64 number is a fraction.

    A uniform number of 53 bits alone is below any positive probability with 2^-53 at least, which at epsilon = 40 is
    far too often. So where it ties with the probability's first 53 bits the next ones decide.

    `probability`: in [0, 1]. `draw`: source of `size` numbers, and of more for ties.
    """
    uniform = draw(size)
    first = math.floor(math.ldexp(probability, 53))
    rest = math.ldexp(probability, 53) - first
    first_bits = math.ldexp(first, -53)
    hit: NDArray[np.bool_] = uniform < first_bits
    if rest:
        ties = np.flatnonzero(uniform == first_bits)
        if ties.size:
            hit[ties] = bernoulli(rest, ties.size, draw)
    return hit


def _from_system(size: int) -> NDArray[np.float64]:
    bits = np.frombuffer(os.urandom(8 * size), np.uint64) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53
