"""Sealed models: random decisions on a hash of X, which a key fixes before there are rows.

A key's sender commits to each model's decision on any row, and learns no row by it. A majority of the models' votes,
for or against, is again a model: that of the majority attack (Blum and Hardt, ICML 2015).
"""

from __future__ import annotations

import numpy as np
from blake3 import blake3

from fairwall.arrays import Bytes, Floats, Ints

KEY_BYTES = 32


def sealed_decisions(key: bytes, features: Floats, models: int) -> Bytes:
    """Return each model's decisions, (models, rows): a fair coin for each model and each X, (rows, d).

    The coins are the bits of keyed BLAKE3 of X's bytes, little-endian, first bit first; 0 equals -0. The key has
    32 bytes, else ValueError.
    """
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
    length = -(-models // 8)
    rows = np.ascontiguousarray(features + 0.0, "<f8")
    drawn = b"".join(blake3(row.tobytes(), key=key).digest(length=length) for row in rows)
    bits = np.unpackbits(np.frombuffer(drawn, np.uint8).reshape(len(rows), length), axis=1, bitorder="little")
    return np.ascontiguousarray(bits[:, :models].T)


def votes(decisions: Bytes, favours: Bytes) -> Ints:
    """Return each row's votes, (rows,), by models that vote as they decide, or the opposite if ``favours`` is 0."""
    counted: Ints = (decisions == favours[:, np.newaxis]).sum(axis=0, dtype=np.int64)
    return counted
