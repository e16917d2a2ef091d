"""Sealed models: random decisions on a hash of X, which a key fixes before there are rows.

Who hands over the key has committed itself to what each of the models says of any row, and learns no row by it. So many
votes of them, for or against, are again a model: that of the majority attack (Blum and Hardt, ICML 2015).
"""

from __future__ import annotations

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

KEY_BYTES = 32


def sealed_decisions(key: bytes, features: NDArray[np.float64], models: int) -> NDArray[np.uint8]:
    """Say whom each model accepts, (models, rows): a fair coin for each model and each X, (rows, d).

    The coins are the bits of keyed BLAKE3 of X's bytes, little-endian, first bit first; rows that are alike have the
    same. 0 and -0 are alike. ValueError unless the key has 32 bytes.
    """
    if len(key) != KEY_BYTES:
        raise ValueError(f"a key has {KEY_BYTES} bytes, not {len(key)}")
    length = -(-models // 8)
    rows = np.ascontiguousarray(features + 0.0, "<f8")
    drawn = b"".join(blake3(row.tobytes(), key=key).digest(length=length) for row in rows)
    bits = np.unpackbits(np.frombuffer(drawn, np.uint8).reshape(len(rows), length), axis=1, bitorder="little")
    return np.ascontiguousarray(bits[:, :models].T)


def votes(decisions: NDArray[np.uint8], favours: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Count how many models vote for accepting each row, (rows,).

    Parameters
    ----------
    decisions : (models, rows), whom each model accepts.
    favours : (models,), 1 where a model votes for whom it accepts, 0 where for whom it rejects.
    """
    counted: NDArray[np.int64] = (decisions == favours[:, np.newaxis]).sum(axis=0, dtype=np.int64)
    return counted
