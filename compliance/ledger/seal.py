"""The sealed head: where the ledger stood last, kept outside its folder and authenticated.

A ledger that is restored from a backup is whole in itself: only something that was not restored with it can tell that
it is old. The seal is an HMAC-SHA256 and no signature, since who seals is who checks: the same service, with one key.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass, field
from pathlib import Path

from fairwall.errors import UserError

_KEY_BYTES = 32


class SealError(UserError):
    """A seal or its key that cannot be trusted. The text says in one line what to do."""


@dataclass(frozen=True)
class Head:
    """Where a ledger stands: the number of its last record, and the digest of the chain up to there."""

    sequence: int
    chain: bytes


@dataclass(frozen=True)
class Seal:
    """The file that keeps a ledger's head.

    Parameters
    ----------
    path : Path
        Outside the ledger's folder, and outside its backups.
    key : bytes
        See `load_key`.
    """

    path: Path
    key: bytes = field(repr=False)

    def derived(self, purpose: str) -> bytes:
        """Derive a key for another purpose: what is made with one says nothing about another."""
        return hmac.digest(self.key, b"fairwall ledger key for " + purpose.encode(), hashlib.sha256)

    def read(self) -> Head | None:
        """Return the head as it was sealed last; None if there is no file.

        Raises
        ------
        SealError
            If the file is not one that this key sealed.
        OSError
        """
        try:
            text = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            sealed = json.loads(text)
            head = Head(sealed["sequence"], bytes.fromhex(sealed["chain"]))
            genuine = hmac.compare_digest(bytes.fromhex(sealed["seal"]), self._mac(head))
        except (ValueError, KeyError, TypeError):
            genuine = False
        if not genuine:
            raise SealError(
                f"{self.path}: not sealed with this key: put back the head file and the key it was made with"
            )
        return head

    def write(self, head: Head) -> None:
        """Replace the sealed head, durably and at once: a crash leaves the old one or the new one."""
        sealed = {"sequence": head.sequence, "chain": head.chain.hex(), "seal": self._mac(head).hex()}
        temporary = self.path.with_name(self.path.name + ".new")
        with temporary.open("wb") as file:
            file.write(json.dumps(sealed).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)
        sync_folder(self.path.parent)

    def _mac(self, head: Head) -> bytes:
        return hmac.digest(self.key, b"fairwall ledger head %d " % head.sequence + head.chain, hashlib.sha256)


def load_key(path: Path) -> bytes:
    """Return the key in a file, which is made, for its owner alone, where there is none.

    Raises
    ------
    SealError
        If the file holds no key, or others than its owner may read it.
    OSError
    """
    if not path.exists():
        # Written aside and then linked: nobody sees half a key, and of two processes that make one, one wins.
        aside = path.with_name(f"{path.name}.{os.getpid()}.new")
        with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(secrets.token_hex(_KEY_BYTES) + "\n")
            file.flush()
            os.fsync(file.fileno())
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(aside)
        aside.unlink()
        sync_folder(path.parent)
    if path.stat().st_mode & 0o077:
        raise SealError(f"{path}: others can read this key: run chmod 600 on it")
    try:
        key = bytes.fromhex(path.read_text().strip())
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise SealError(
            f"{path}: not a key of {_KEY_BYTES} bytes in hexadecimal: put back the one the head was sealed with"
        )
    return key


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
