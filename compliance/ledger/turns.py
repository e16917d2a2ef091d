"""Turns of developers: one with many requests at once waits for itself, without delaying others."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


class Turns:
    """Turns that compute one answer of each developer at a time, and as many in all as there are processors.

    At most one request of each developer waits among the others', so that all have turns equally often, however many
    requests one of them sends.
    """

    def __init__(self) -> None:
        self._own: dict[str, threading.Lock] = {}
        self._room = threading.BoundedSemaphore(len(os.sched_getaffinity(0)))

    @contextmanager
    def turn(self, developer: str, elsewhere: AbstractContextManager[None]) -> Iterator[None]:
        """Hold a developer's turn in this process, then among other processes, for the duration of the context."""
        with self._own.setdefault(developer, threading.Lock()), elsewhere, self._room:
            yield
