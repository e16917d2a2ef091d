"""The process that serves a ledger, for commands that send it a signal.

Beside the ledger lies a file that the service keeps locked, in which it writes the policy it has read last. The kernel
knows the lock's holder: a process number in a file may be another process's by now, or another container's.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import struct
from dataclasses import dataclass
from pathlib import Path

LOG = logging.getLogger(__name__)

_LOCK = "@hhqqi"
"""The kernel's ``struct flock``: kind, whence, start, length, process."""


@dataclass(frozen=True)
class Read:
    """A service's record of the policy it has read.

    `times`: number of reads since the start. `policy`: SHA-256 of the policy in force, in hexadecimal. `problem`: why
    the policy read last is not in force; empty if it is.
    """

    times: int
    policy: str
    problem: str


class Running:
    """The service's side of the file; unused for a ledger in a database, which any number of services share."""

    def __init__(self, ledger: Path | str) -> None:
        self._times = 0
        self._descriptor: int | None = None
        if isinstance(ledger, str):
            return
        path = _path(ledger)
        try:
            # Never closed: the kernel releases the lock when the process ends, in whatever way.
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._descriptor = descriptor
        except BlockingIOError:
            LOG.warning("%s: another service uses this ledger; send this one SIGHUP yourself", path)
        except OSError as error:  # the ledger may be read-only: bought answers are still repeated
            LOG.warning("%s: %s; send this service SIGHUP yourself", path, error.strerror)

    def says(self, policy: bytes, problem: str = "") -> None:
        """Record the policy in force after a read, and why the policy read is not in force, if so."""
        self._times += 1
        if self._descriptor is None:
            return
        told = {"times": self._times, "policy": policy.hex(), "problem": problem}
        text = json.dumps(told).encode() + b"\n"
        with contextlib.suppress(OSError):  # a full disk: the waiting command refers to the log
            os.pwrite(self._descriptor, text, 0)
            os.truncate(self._descriptor, len(text))


def service_of(ledger: Path) -> int | None:
    """Return the process that serves a ledger, None if none does; 0 if this process cannot see it."""
    try:
        descriptor = os.open(_path(ledger), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        asked = struct.pack(_LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, *_, holder = struct.unpack(_LOCK, fcntl.fcntl(descriptor, fcntl.F_GETLK, asked))
    finally:
        os.close(descriptor)
    return None if kind == fcntl.F_UNLCK else int(holder)


def read_by(ledger: Path) -> Read:
    """Return the record of a ledger's service; an empty one while it is being written."""
    try:
        return Read(**json.loads(_path(ledger).read_bytes()))
    except (OSError, ValueError, TypeError):
        return Read(0, "", "")


def _path(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}.service")
