"""Random bits that a key decides: for noise that can be recomputed by whom the key is opened to, and by nobody else."""

from __future__ import annotations

import random

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

_AT_ONCE = 256


class KeyedBits(random.Random):
    """The stream of ChaCha20 under a key, whose first block has the number 0: each key is for one answer alone.

    Whoever has not the key cannot tell it from random bits: that is what ChaCha20 is believed to be (RFC 8439).

    Parameters
    ----------
    key : 32 bytes.
    """

    def __init__(self, key: bytes) -> None:
        self._key, self._taken = key, 0
        self._stream = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor()
        self._ready = b""
        super().__init__()

    def __deepcopy__(self, _: object) -> KeyedBits:
        """Return one that goes on where this one is."""
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
        """Return a number of so many bits."""
        size = (k + 7) // 8
        return int.from_bytes(self.randbytes(size), "little") >> (8 * size - k)

    def random(self) -> float:
        """Return a multiple of 2^-53 in [0, 1)."""
        return self.getrandbits(53) * 2.0**-53
