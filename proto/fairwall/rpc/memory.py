"""Memory for large arrays that come in, kept from one array to the next.

The operating system takes longer to hand memory over, page by page, than it takes to copy a chunk there: half as long
again at best, twenty times as long on a virtual machine that has given the memory back to its host in between. Small
pieces are kept by the allocator.
"""

from __future__ import annotations

import contextlib
import ctypes
import weakref
from collections import deque

import numpy as np
from numpy.typing import NDArray

LARGE_BYTES = 32 << 20
"""From here on the allocator returns memory to the system as soon as it is free."""

KEPT_BYTES_MAX = 256 << 20
"""What a process may hold on to between two arrays."""

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h numbers what can be set

_spare: deque[memoryview] = deque(maxlen=1)  # its methods are atomic: a lock could be wanted while it is held


def room(size: int) -> NDArray[np.uint8]:
    """Set so many bytes aside, for which nothing else is used as long as the array or a view of it is alive.

    Their contents are arbitrary.
    """
    if size < LARGE_BYTES:
        return np.empty(size, np.uint8)
    try:
        memory = _spare.pop()
    except IndexError:
        memory = memoryview(b"")
    if not size <= len(memory) <= 2 * size:
        memory = np.empty(size, np.uint8).data  # numpy asks for large pages
    # Every view of an array that does not own its memory refers to that array: once it is collected, nothing is left.
    array = np.frombuffer(memory, np.uint8, count=size)
    if len(memory) <= KEPT_BYTES_MAX:
        weakref.finalize(array, _spare.append, memory).atexit = False
    return array


def keep_small() -> None:
    """Have the allocator keep smaller pieces from the start, and not only once it has seen how large they come.

    The limits are the highest that glibc's would rise to by themselves. Another allocator is left as it is.
    """
    with contextlib.suppress(AttributeError):
        allocator = ctypes.CDLL(None)
        allocator.mallopt(_MMAP_THRESHOLD, LARGE_BYTES)
        allocator.mallopt(_TRIM_THRESHOLD, 2 * LARGE_BYTES)
