"""A caller's fair use of a server: a daily quota, whatever its remaining budget, and one call worked on at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

DAY_SECONDS = 86_400.0


@dataclass(frozen=True)
class Quota:
    """The daily quota of one caller.

    Parameters
    ----------
    calls : answered or refused; calls refused for lack of room are not counted.
    bytes : of messages, both ways; predictions count as float64, whatever their type.
    """

    calls: int = 100_000
    bytes: int = 10 << 30


class Meter:
    """A caller's use of its quota; a day begins with the first call after the last one ended."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._lock = threading.Lock()
        self._until = 0.0
        self._calls = self._bytes = 0

    def allow(self, quota: Quota) -> None:
        """Change the quota; the use so far stays counted."""
        with self._lock:
            self._quota = quota

    def call(self) -> None:
        """Count a call; Refusal ``QUOTA_EXHAUSTED`` if it is one too many, or the bytes are used up."""
        now = time.monotonic()
        with self._lock:
            if now >= self._until:
                self._until, self._calls, self._bytes = now + DAY_SECONDS, 0, 0
            self._calls += 1
            self._check()

    def received(self, data: bytes) -> bytes:
        """Count a received message, and return it; Refusal as `call`."""
        self.weigh(len(data))
        return data

    def weigh(self, size: int) -> None:
        """Count ``size`` bytes; Refusal as `call`."""
        with self._lock:
            self._bytes += size
            self._check()

    def sent(self, data: bytes) -> bytes:
        """Count a sent message, and return it, without a refusal: an answer that was paid for is sent."""
        with self._lock:
            self._bytes += len(data)
        return data

    def _check(self) -> None:
        if self._calls > self._quota.calls or self._bytes > self._quota.bytes:
            raise Refusal(error_pb2.REASON_QUOTA_EXHAUSTED)


_metered: ContextVar[Meter | None] = ContextVar("metered", default=None)


@contextmanager
def metered(meter: Meter) -> Iterator[None]:
    """Count the body's messages on a meter."""
    token = _metered.set(meter)
    try:
        yield
    finally:
        _metered.reset(token)


def weigh(size: int) -> None:
    """Count ``size`` bytes for the call being answered, as `Meter.weigh`; does nothing if none is counted."""
    if (meter := _metered.get()) is not None:
        meter.weigh(size)


_held: ContextVar[threading.Lock | None] = ContextVar("held", default=None)


@contextmanager
def working(turn: threading.Lock) -> Iterator[None]:
    """Work on a call in the body, once no other call of the same caller is worked on.

    The interpreter gives turns to threads, not to callers: eight threads of one caller would have eight turns.
    """
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
