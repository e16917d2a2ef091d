"""Commitments to decisions: SHA-256 of a random salt and of the decisions, one a person.

Binding: to open one with other decisions takes a collision under SHA-256. Hiding: the salt has 256 random bits. Not
covered: which model decided, or that model's training.
"""

from __future__ import annotations

import hashlib
import hmac

import numpy as np

from fairwall.arrays import Bytes

BYTES = 32
"""Length of a commitment, and of a salt, in bytes."""

_SCOPE = b"fairwall decisions 1\0"


def commit(decisions: Bytes, salt: bytes) -> bytes:
    """Return a commitment to decisions, (people,), 0 or 1; ValueError for a salt of another length."""
    if len(salt) != BYTES:
        raise ValueError(f"a salt has {BYTES} bytes, not {len(salt)}")
    return hashlib.sha256(_SCOPE + salt + np.ascontiguousarray(decisions, np.uint8).tobytes()).digest()


def opens(commitment: bytes, decisions: Bytes, salt: bytes) -> bool:
    """Return whether a salt opens a commitment of any length to these decisions."""
    return len(salt) == BYTES and hmac.compare_digest(commitment, commit(decisions, salt))
