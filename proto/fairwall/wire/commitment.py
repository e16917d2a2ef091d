"""Commitments to decisions: SHA-256 of a random salt and of the decisions, one a person.

Whoever has committed cannot open it with other decisions, for these would collide under SHA-256; whoever sees the
commitment alone learns nothing, for the salt has 256 random bits. It does not say which model decided, or how that was
trained.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np
from numpy.typing import NDArray

BYTES = 32
"""The length of a commitment, and of a salt."""

_SCOPE = b"fairwall decisions 1\0"


def commit(decisions: NDArray[np.uint8], salt: bytes) -> bytes:
    """Commit to decisions, (people,), 0 or 1; ValueError for a salt of another length."""
    if len(salt) != BYTES:
        raise ValueError(f"a salt has {BYTES} bytes, not {len(salt)}")
    return hashlib.sha256(_SCOPE + salt + np.ascontiguousarray(decisions, np.uint8).tobytes()).digest()


def opens(commitment: bytes, decisions: NDArray[np.uint8], salt: bytes) -> bool:
    """Whether a salt opens a commitment, of whatever length it came, to be one to these decisions."""
    return len(salt) == BYTES and hmac.compare_digest(commitment, commit(decisions, salt))
