"""Turns of a caller's calls: one is worked on at a time, so that a caller of many waits for itself.

The interpreter gives turns to threads, not to callers: eight threads of one caller would have eight turns.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_held: ContextVar[threading.Lock | None] = ContextVar("held", default=None)


@contextmanager
def working(turn: threading.Lock) -> Iterator[None]:
    """Work on a call in the body, once no other call of the same caller is worked on."""
    with turn:
        token = _held.set(turn)
        try:
            yield
        finally:
            _held.reset(token)


@contextmanager
def waiting() -> Iterator[None]:
    """Let the caller's other calls be worked on while this one waits for anything but the processor."""
    turn = _held.get()
    if turn is None:
        yield
        return
    turn.release()
    try:
        yield
    finally:
        turn.acquire()
