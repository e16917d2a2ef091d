"""Files that others read while they change: a reader finds the old one or the new one, whole."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from compliance.ledger.head import sync_folder


def replace(path: Path, text: str) -> None:
    """Write a file or replace it, at once and durably. What is new is for its owner alone, from the beginning.

    What is replaced keeps its mode, and its owner where the system lets us: the service that reads it may be another
    user. Raises OSError.
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
