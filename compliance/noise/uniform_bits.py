"""Uniform random bits: by a key, by a seed, or from the operating system.

With a key, noise can be recomputed by anybody given the key, and by nobody else. Sanitising takes uniform numbers of 53
bits, seeded or from the operating system.
"""

from __future__ import annotations

import math
import os
import random
from collections.abc import Callable

import numpy as np

from fairwall.arrays import Bools, Floats

_AT_ONCE = 256


class KeyedBits(random.Random):
    """The ChaCha20 stream of a key, from block number 0: each key is for one answer alone.

    Without the key the stream cannot be told from random bits: that is what ChaCha20 is believed to be (RFC 8439).

    `key`: 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key, self._taken = key, 0
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

        self._stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._ready = b""
        super().__init__()

    def __deepcopy__(self, _: object) -> KeyedBits:
        """Return a copy that continues from the present position."""
        copied = KeyedBits(self._key)
        copied.randbytes(self._taken)
        return copied

    def seed(self, *_: object, **__: object) -> None:
        """Do nothing: the key is the seed."""

    def randbytes(self, n: int) -> bytes:
        """Return the next bytes."""
        if n > len(self._ready):
            self._ready += self._stream.update(bytes(max(_AT_ONCE, n - len(self._ready))))
        taken, self._ready = self._ready[:n], self._ready[n:]
        self._taken += n
        return taken

    def getrandbits(self, k: int, /) -> int:
        """Return a number of `k` bits."""
        size = (k + 7) // 8
        return int.from_bytes(self.randbytes(size), "little") >> (8 * size - k)

    def random(self) -> float:
        """Return a multiple of 2^-53 in [0, 1)."""
        return self.getrandbits(53) * 2.0**-53


Draw = Callable[[int], Floats]
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


def bernoulli(probability: float, size: int, draw: Draw) -> Bools:
    """Return independent draws, True with exactly this probability however small: a float64 number is a fraction.

    A uniform number of 53 bits alone is below any positive probability with 2^-53 at least, which at epsilon = 40 is
    far too often. So where it ties with the probability's first 53 bits the next ones decide.

    `probability`: in [0, 1]. `draw`: source of `size` numbers, and of more for ties.
    """
    uniform = draw(size)
    first = math.floor(math.ldexp(probability, 53))
    rest = math.ldexp(probability, 53) - first
    first_bits = math.ldexp(first, -53)
    hit: Bools = uniform < first_bits
    if rest:
        ties = np.flatnonzero(uniform == first_bits)
        if ties.size:
            hit[ties] = bernoulli(rest, ties.size, draw)
    return hit


def _from_system(size: int) -> Floats:
    bits = np.frombuffer(os.urandom(8 * size), np.uint64) >> np.uint64(11)
    return bits.astype(np.float64) * 2.0**-53
