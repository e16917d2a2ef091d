"""Commit a curator to its records' attributes and its noise before any request: hashes, which reveal neither.

**Rows.** Each row is public bytes and a secret attribute in {0, 1}. A leaf is SHA-256(0 | salt | attribute | row), and
a node SHA-256(1 | left | right); a tree of n > 1 leaves has the largest power of two below n on its left (RFC 6962,
section 2.1). To find another set of attributes, or another number of them, with one root is to find a collision of
SHA-256: leaves and nodes begin differently, and salts and attributes have one length. The salts are 32 bytes each,
pseudo-random in a key that stays secret: without them the two attributes that a row may have could both be tried.

**Noise.** The seed is 32 random bytes, so that SHA-256(2 | seed) tells nothing of it. A request's noise is made of
HMAC-SHA-256(seed, length of its name | name | nonce). The nonce is the developer's: a curator who has committed to the
seed does not know a request's noise beforehand, and has one noise for it, not the best of several; one who knew all
requests beforehand could try seeds until it likes their noise. Names and nonces travel as one request id.

The commitment binds the curator's own data: nothing here shows that the attributes are people's true ones.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from fairwall.arrays import Bytes
from fairwall.errors import UserError

DIGEST_BYTES = 32

_LEAF, _NODE, _SEED = b"\x00", b"\x01", b"\x02"


class CommitmentError(UserError):
    """A commitment that does not match these rows. Its text is one line, and a function of public numbers alone."""


@dataclass(frozen=True)
class Commitment:
    """A commitment, published before any request.

    `rows`: the number of rows. `rows_digest`: of the public part of the rows, in their order. `root`: of the tree over
    salted rows and attributes. `seed_digest`: of the noise's seed.
    """

    rows: int
    rows_digest: bytes
    root: bytes
    seed_digest: bytes

    def require(self, rows: Sequence[bytes]) -> None:
        """Raise CommitmentError unless this is a commitment to these rows, with any attributes."""
        if self.rows != len(rows):
            raise CommitmentError(f"the commitment is to {self.rows:,} rows, not to {len(rows):,}")
        if any(len(part) != DIGEST_BYTES for part in (self.rows_digest, self.root, self.seed_digest)):
            raise CommitmentError(f"the commitment has a digest that is not of {DIGEST_BYTES} bytes")
        if self.rows_digest != digest_of(rows):
            raise CommitmentError("the commitment is to other rows")

    def is_opened(self, rows: Sequence[bytes], attributes: Sequence[int], seed: bytes, salt_key: bytes) -> bool:
        """Return whether this is the commitment to these rows with these attributes, and to this seed."""
        try:
            return commit(rows, attributes, seed, salt_key) == self
        except CommitmentError:
            return False


def commit(rows: Sequence[bytes], attributes: Sequence[int], seed: bytes, salt_key: bytes) -> Commitment:
    """Return the commitment to at least one row with its attributes, and to a seed.

    CommitmentError unless each row has one attribute, 0 or 1.
    """
    if not rows or len(rows) != len(attributes) or not set(attributes) <= {0, 1}:
        raise CommitmentError("there must be one attribute a row, 0 or 1, and at least one row")
    leaves = [
        hashlib.sha256(_LEAF + salt(salt_key, number) + bytes([attribute]) + row).digest()
        for number, (row, attribute) in enumerate(zip(rows, attributes, strict=True))
    ]
    return Commitment(len(rows), digest_of(rows), root_of(leaves), digest_of_seed(seed))


def digest_of_seed(seed: bytes) -> bytes:
    """Return the published digest of a seed."""
    return hashlib.sha256(_SEED + seed).digest()


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the root of the tree over at least one leaf."""
    if len(leaves) == 1:
        return leaves[0]
    left = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(_NODE + root_of(leaves[:left]) + root_of(leaves[left:])).digest()


def salt(key: bytes, number: int) -> bytes:
    """Return a row's salt, 32 bytes."""
    return hmac.digest(key, number.to_bytes(8, "big"), hashlib.sha256)


def digest_of(rows: Sequence[bytes]) -> bytes:
    """Return the digest of the rows' public bytes, each prefixed with its length, so that no two lists collide."""
    return hashlib.sha256(b"".join(len(row).to_bytes(8, "big") + row for row in rows)).digest()


def noise_key(seed: bytes, name: str, nonce: bytes) -> bytes:
    """Return the key of a request's noise: 32 bytes, a pseudo-random function of the request's name and nonce."""
    written = name.encode()
    return hmac.digest(seed, len(written).to_bytes(8, "big") + written + nonce, hashlib.sha256)


def request_id(name: str, nonce: bytes) -> str:
    """Return the id that joins a request's name and nonce."""
    return f"{name}.{nonce.hex()}"


def name_and_nonce(request_id: str) -> tuple[str, bytes]:
    """Return the name and nonce of a request id; an id in another format is all name.

    No two ids share both: else two requests would have the same noise, which cancels in the difference of their
    answers.
    """
    name, _, written = request_id.rpartition(".")
    is_nonce = written and not len(written) % 2 and set(written) <= set("0123456789abcdef")
    return (name, bytes.fromhex(written)) if name and is_nonce else (request_id, b"")


def rows_of(labels: Bytes) -> list[bytes]:
    """Return the public bytes of a test set's rows: number and label of each; labels are 0 or 1, shape (rows,)."""
    return [number.to_bytes(8, "big") + bytes([label]) for number, label in enumerate(labels.tolist())]
