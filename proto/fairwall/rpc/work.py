"""Whose call is worked on: of one caller's calls one at a time, so that who makes many waits for itself.

All threads of a server share one interpreter, which gives them turns whosever calls they answer. A caller with eight
threads would have eight turns for each one of a caller with one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_held: ContextVar[threading.Lock | None] = ContextVar("held", default=None)


@contextmanager
def working(turn: threading.Lock) -> Iterator[None]:
    """Work on a call, once the caller whose turn this is has no other that is worked on."""
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
