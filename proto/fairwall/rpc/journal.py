"""The log of calls: one line of JSON for each that a deployment has answered or refused.

It says who asked, which request, what came of it and what that cost. Nothing of it is computed from protected data.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TypeAlias

_Value: TypeAlias = str | float | int

LOG = logging.getLogger("fairwall.calls")
_noted: ContextVar[dict[str, _Value] | None] = ContextVar("noted", default=None)


def note(**facts: _Value) -> None:
    """Note something about the call that is being answered, for its line; where no line is written, nothing."""
    noted = _noted.get()
    if noted is not None:
        noted.update(facts)


@contextmanager
def noting() -> Iterator[dict[str, _Value]]:
    """Collect what is noted about a call, as long as the context lasts."""
    facts: dict[str, _Value] = {}
    token = _noted.set(facts)
    try:
        yield facts
    finally:
        _noted.reset(token)


def write(caller: str, method: str, outcome: str, facts: dict[str, _Value], seconds: float) -> None:
    """Write a call's line; how long it took is for those who listen besides."""
    call = {"caller": caller, "method": method, "outcome": outcome, **facts}
    LOG.info("", extra={"call": call, "seconds": seconds})


def handshake(**facts: _Value) -> None:
    """Write the line of a connection that failed before there was a call."""
    LOG.info("", extra={"call": {"outcome": "handshake failed", **facts}})


def start() -> None:
    """Send the lines to stderr, as they are."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    LOG.addHandler(handler)
    LOG.propagate = False
    LOG.setLevel(logging.INFO)


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": time, **getattr(record, "call", {})})
