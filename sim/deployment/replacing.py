"""Atomic replacement of files: a reader finds the old content or the new one, whole."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from compliance.ledger.head import sync_folder


def replace(path: Path, text: str) -> None:
    """Write or replace a file, atomically and durably; a new one is for its owner alone from the beginning.

    A replaced file keeps its mode, and its owner where the system allows: its reader, a service, may be another user.
    """
    path = path.resolve()  # a link to it stays one
    aside = path.with_name(f"{path.name}.new")
    aside.unlink(missing_ok=True)
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        if path.exists():
            old = path.stat()
            with contextlib.suppress(PermissionError):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    sync_folder(path.parent)
