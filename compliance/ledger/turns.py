"""Whose answer is computed next: a developer that asks for many at once waits for itself, not others for it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager


class Turns:
    """Lets one answer of each developer be computed at a time, and in all as many as there are processors.

    No developer has more than one that waits among the others', so that all have turns as often, however many requests
    one of them sends.
    """

    def __init__(self) -> None:
        self._own: dict[str, threading.Lock] = {}
        self._room = threading.BoundedSemaphore(len(os.sched_getaffinity(0)))

    @contextmanager
    def turn(self, developer: str, elsewhere: AbstractContextManager[None]) -> Iterator[None]:
        """Wait for a developer's turn here, and then among other processes; both last as long as the context."""
        with self._own.setdefault(developer, threading.Lock()), elsewhere, self._room:
            yield
