"""A check of files that another user has put in place, before they are read."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def require_end(path: Path) -> None:
    """Raise OSError for a path that may never end, such as a pipe, or cannot be inspected; reading refuses folders."""
    if stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        raise OSError(errno.EINVAL, "not a file")
