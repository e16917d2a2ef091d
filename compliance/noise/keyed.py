"""Random bits that are a function of a key: noise can be recomputed by anybody given the key, and by nobody else."""

from __future__ import annotations

import random

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

_AT_ONCE = 256


class KeyedBits(random.Random):
    """The ChaCha20 stream of a key, from block number 0: each key is for one answer alone.

    Without the key the stream cannot be told from random bits: that is what ChaCha20 is believed to be (RFC 8439).

    `key`: 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key, self._taken = key, 0
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
