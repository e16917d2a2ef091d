"""The sealed head: the ledger's last known end, kept outside its folder and authenticated.

A ledger that is restored from a backup is whole in itself: only something that was not restored with it can tell that
it is old. The seal is an HMAC-SHA256 and no signature, since the same service seals and checks, with one key.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import hmac
import json
import os
import secrets
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from fairwall.errors import UserError

_KEY_BYTES = 32

_PLACE_BYTES = 4096
"""Bytes of a place in the file: a disk may lose the block that it was writing when the power went."""


class SealError(UserError):
    """A seal or its key that cannot be trusted. The text says in one line what to do."""


@dataclass(frozen=True)
class Head:
    """The end of a ledger: the number of its last record, and the digest of the chain up to there."""

    sequence: int
    chain: bytes


class AnySeal(Protocol):
    """A store of heads: a file for each chain, or a table in another database than the ledger's.

    All calls raise SealError for what this key did not seal, and OSError where nothing can be read or written.
    """

    @property
    def path(self) -> Path | str:
        """The name in messages."""

    def derived(self, purpose: str) -> bytes:
        """Return a key for another purpose: what is made with one reveals nothing about another."""

    def of(self, chain: str) -> AnySeal:
        """Return the seal of one chain's head."""

    def is_inside(self, folder: Path) -> bool:
        """Return whether copies of a folder would hold this head too."""

    def check_apart(self, ledger: str) -> None:
        """Raise LedgerError if the head would be restored with a ledger's database; LedgerUnavailable."""

    def exists(self) -> bool:
        """Return whether a head was sealed here, of any chain."""

    def read(self) -> Head | None:
        """Return the head as it was sealed last; None if none was."""

    def write(self, head: Head) -> None:
        """Seal the next head, durably: a crash leaves the previous head or this one.

        OSError if a later record is sealed, or another one of this number: a process that has lost the chain without
        noticing cannot take a seal back, and the chain's holder learns that its own is missing.
        """

    def begin(self, head: Head) -> None:
        """Seal a head that need not follow the previous one, durably: any earlier seal is overwritten or lost."""


@dataclass(frozen=True)
class Seal:
    """The file that keeps a ledger's head.

    `path`: outside the ledger's folder, and outside its backups. `key`: see `load_key`.
    """

    path: Path
    key: bytes = field(repr=False)

    def derived(self, purpose: str) -> bytes:
        """Return a derived key, see `AnySeal`."""
        return derived(self.key, purpose)

    def check_apart(self, ledger: str) -> None:
        """Accept every database: the place of its files is not known here."""

    def exists(self) -> bool:
        """Return whether a head was sealed here, see `AnySeal`."""
        return self.path.exists() or any(self.path.parent.glob(f"{self.path.name}.*"))

    def of(self, chain: str) -> Seal:
        """Return the seal of one chain: this file for the only chain, a file for each of several."""
        name = f"{self.path.name}.{quote(chain, safe='')}" if chain else self.path.name
        return replace(self, path=self.path.with_name(name))

    def is_inside(self, folder: Path) -> bool:
        """Return whether copies of a folder would hold this head too."""
        return self.path.resolve().is_relative_to(folder.resolve())

    def read(self) -> Head | None:
        """Return the head as it was sealed last; None if there is no file.

        SealError if the file holds nothing that this key sealed; OSError.
        """
        try:
            descriptor = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            return None
        try:
            return self._read(descriptor)
        finally:
            os.close(descriptor)

    def write(self, head: Head) -> None:
        """Seal a head durably: a crash leaves the previous head or this one. OSError if a later head is sealed.

        The file has two places, which successive heads take in turn: what is being written is never the only head, and
        overwriting a place costs the disk one sync of its bytes and none of names and sizes.
        """
        if self.path.exists() and self.path.stat().st_size == 2 * _PLACE_BYTES:
            self._write_over(head)
        else:
            self._begin(2 * self._place(head))

    def begin(self, head: Head) -> None:
        """Seal a head that need not follow the previous one, see `AnySeal`; its folder is made if it is gone."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._begin(2 * self._place(head))

    def _place(self, head: Head) -> bytes:
        sealed = {"sequence": head.sequence, "chain": head.chain.hex(), "seal": seal_of(self.key, head).hex()}
        return json.dumps(sealed).encode().ljust(_PLACE_BYTES - 1) + b"\n"

    def _read(self, descriptor: int) -> Head:
        text = os.pread(descriptor, 2 * _PLACE_BYTES, 0)
        places = text[:_PLACE_BYTES], text[_PLACE_BYTES:]
        heads = [head for head in (_head_in(place, self.key) for place in places) if head is not None]
        if not heads:
            raise SealError(
                f"{self.path}: not sealed with this key: put back the head file and the key it was made with"
            )
        return max(heads, key=lambda head: head.sequence)

    def _write_over(self, head: Head) -> None:
        descriptor = os.open(self.path, os.O_RDWR)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)  # until it is closed: no other seal between read and write
            last = self._read(descriptor)
            if last != head and last.sequence >= head.sequence:
                raise too_late(self.path)
            self._write_place(descriptor, self._place(head), head.sequence % 2 * _PLACE_BYTES)
        finally:
            os.close(descriptor)

    def _write_place(self, descriptor: int, place: bytes, start: int) -> None:
        try:
            if os.pwrite(descriptor, place, start) < len(place):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            os.fdatasync(descriptor)
        except OSError:
            os.pwrite(descriptor, bytes(len(place)), start)  # what may not be on the disk must not pass for sealed
            raise

    def _begin(self, text: bytes) -> None:
        """Write a new file atomically: a crash leaves the old one or the new one."""
        temporary = self.path.with_name(self.path.name + ".new")
        with temporary.open("wb") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.path)
        sync_folder(self.path.parent)


@lru_cache(maxsize=8)
def _head_in(place: bytes, key: bytes) -> Head | None:
    """Return the head in a place of the file; None if it was not sealed with this key."""
    try:
        sealed = json.loads(place)
        head = Head(sealed["sequence"], bytes.fromhex(sealed["chain"]))
        genuine = hmac.compare_digest(bytes.fromhex(sealed["seal"]), seal_of(key, head))
    except (ValueError, KeyError, TypeError):
        return None
    return head if genuine else None


def load_key(path: Path) -> bytes:
    """Return the key in a file, which is made, for its owner alone, if absent.

    SealError if the file holds no key, or others than its owner may read it; OSError.
    """
    if not path.exists():
        # Written aside and then linked: nobody reads half a key, and of two processes that make one, one wins.
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


def derived(key: bytes, purpose: str) -> bytes:
    """Return a key for another purpose: what is made with one reveals nothing about another."""
    return hmac.digest(key, b"fairwall ledger key for " + purpose.encode(), hashlib.sha256)


def seal_of(key: bytes, head: Head) -> bytes:
    """Return the HMAC that proves that a holder of the key sealed a head."""
    return hmac.digest(key, b"fairwall ledger head %d " % head.sequence + head.chain, hashlib.sha256)


def too_late(path: Path | str) -> OSError:
    """Return the error for a head that comes after a later record's, or another one of its number."""
    return OSError(errno.ESTALE, "another service went on with this chain", str(path))


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
