"""How much of a server one caller may use in a day, however much of its budget is left."""

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
    """What one caller may use in a day.

    Parameters
    ----------
    calls : answered or refused; those for which there is no room are not counted.
    bytes : of messages, both ways; predictions count as float64, whatever they travel as.
    """

    calls: int = 100_000
    bytes: int = 10 << 30


class Meter:
    """What one caller has used of its quota; a day begins with the first call after the last one ended."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._lock = threading.Lock()
        self._until = 0.0
        self._calls = self._bytes = 0

    def allow(self, quota: Quota) -> None:
        """Change the quota; what is used of it stays used."""
        with self._lock:
            self._quota = quota

    def call(self) -> None:
        """Count a call.

        Raises
        ------
        Refusal
            ``QUOTA_EXHAUSTED`` if that is one too many, or the bytes are used up.
        """
        now = time.monotonic()
        with self._lock:
            if now >= self._until:
                self._until, self._calls, self._bytes = now + DAY_SECONDS, 0, 0
            self._calls += 1
            self._check()

    def received(self, data: bytes) -> bytes:
        """Count a message that came in, and pass it on; Refusal as `call`."""
        self.weigh(len(data))
        return data

    def weigh(self, size: int) -> None:
        """Count so many bytes; Refusal as `call`."""
        with self._lock:
            self._bytes += size
            self._check()

    def sent(self, data: bytes) -> bytes:
        """Count a message that goes out, and pass it on: an answer that was paid for is given."""
        with self._lock:
            self._bytes += len(data)
        return data

    def _check(self) -> None:
        if self._calls > self._quota.calls or self._bytes > self._quota.bytes:
            raise Refusal(error_pb2.REASON_QUOTA_EXHAUSTED)


_metered: ContextVar[Meter | None] = ContextVar("metered", default=None)


@contextmanager
def metered(meter: Meter) -> Iterator[None]:
    """Let what is counted in this context count for a meter."""
    token = _metered.set(meter)
    try:
        yield
    finally:
        _metered.reset(token)


def weigh(size: int) -> None:
    """Count so many bytes for the call that is being answered, as `Meter.weigh`; nothing where none is counted."""
    if (meter := _metered.get()) is not None:
        meter.weigh(size)
