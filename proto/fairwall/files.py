"""What is asked of a file that somebody else has put there, before it is read."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def require_end(path: Path) -> None:
    """Refuse what one may wait for without end, such as a pipe; a folder is left to the reading to refuse.

    OSError if it is not there or may not be looked at, or is such a thing.
    """
    if stat.S_IFMT(path.stat().st_mode) not in (stat.S_IFREG, stat.S_IFDIR):
        raise OSError(errno.EINVAL, "not a file")
