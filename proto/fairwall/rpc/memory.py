"""Memory for large arrays that come in, reused from one array to the next; the largest are in a file without a name.

The operating system takes longer to provide memory, page by page, than a chunk takes to copy: half as long again at
best, twenty times as long on a virtual machine that has returned the memory to its host. The allocator keeps small
pieces.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import tempfile
import weakref
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes

LARGE_BYTES = 32 << 20
"""Size from which the allocator returns memory to the system as soon as it is free."""

KEPT_BYTES_MAX = 256 << 20
"""Most memory that a process keeps between two arrays."""

SPILLED_BYTES = 512 << 20
"""Size from which an array is in a file, if there is a folder for it."""

LET_GO_BYTES = 64 << 20
"""Most memory of an array in a file while it comes in."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h numbers what can be set

_folders: list[Path] = []

_spare: deque[memoryview] = deque(maxlen=1)  # its methods are atomic: a lock could be wanted while it is held


def room(size: int) -> Bytes:
    """Return uninitialised bytes, used for nothing else while the array or a view of it exists."""
    if size < LARGE_BYTES:
        return np.empty(size, np.uint8)
    if size >= SPILLED_BYTES and _folders:
        with contextlib.suppress(OSError):  # the disk may be full: use memory
            return _on_disk(_folders[0], size)
    try:
        memory = _spare.pop()
    except IndexError:
        memory = memoryview(b"")
    if not size <= len(memory) <= 2 * size:
        memory = np.empty(size, np.uint8).data  # numpy asks for large pages
    # Every view of an array that does not own its memory refers to that array: once it is collected, no view is left.
    array = np.frombuffer(memory, np.uint8, count=size)
    if len(memory) <= KEPT_BYTES_MAX:
        weakref.finalize(array, _spare.append, memory).atexit = False
    return array


def spill_to(folder: Path) -> None:
    """Make `room` put very large arrays into files in a folder; the files have no name, and end with the array."""
    _folders[:] = [folder] if hasattr(os, "posix_fallocate") else []  # macOS has none


def part(array: NDArray[Any], rows: slice, columns: NDArray[np.intp] | slice) -> NDArray[Any]:
    """Return some columns of some rows; of an array in a file, no more than one row stays in memory."""
    taken = array[rows]
    if _file_of(array) is None:
        return taken[:, columns] if isinstance(columns, slice) else np.take(taken, columns, axis=1)
    found = []
    for row in taken:
        found.append(row[columns].copy())
        let_go(array)
    return np.stack(found)


def let_go(array: NDArray[Any]) -> None:
    """Release the memory of an array that is in a file."""
    if (file := _file_of(array)) is not None:
        file.madvise(mmap.MADV_DONTNEED)


def _on_disk(folder: Path, size: int) -> Bytes:
    with tempfile.TemporaryFile(dir=folder) as file:
        disk = os.fstatvfs(file.fileno())
        if 2 * size > disk.f_bavail * disk.f_frsize:  # others write here too, and their data are kept
            raise OSError(errno.ENOSPC, "half of what is left stays free")
        os.posix_fallocate(file.fileno(), 0, size)  # a write to a full disk would end the process
        return np.ndarray(size, np.uint8, mmap.mmap(file.fileno(), size))


def _file_of(array: NDArray[Any]) -> mmap.mmap | None:
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None


def keep_small() -> None:
    """Make glibc's allocator keep smaller pieces from the start, with the highest limits it would reach by itself."""
    with contextlib.suppress(AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        allocator.mallopt(_TRIM_THRESHOLD, 2 * LARGE_BYTES)
