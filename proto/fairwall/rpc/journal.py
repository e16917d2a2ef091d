"""The log of a deployment's calls, answered or refused: a line of JSON each, nothing from protected data."""

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
    """Add facts to the line of the call being answered; does nothing if no line is written."""
    noted = _noted.get()
    if noted is not None:
        noted.update(facts)


@contextmanager
def noting() -> Iterator[dict[str, _Value]]:
    """Collect the facts noted about a call while the context lasts."""
    facts: dict[str, _Value] = {}
    token = _noted.set(facts)
    try:
        yield facts
    finally:
        _noted.reset(token)


def write(caller: str, method: str, outcome: str, facts: dict[str, _Value], seconds: float) -> None:
    """Write a call's line; further log handlers also get its duration."""
    call = {"caller": caller, "method": method, "outcome": outcome, **facts}
    LOG.info("", extra={"call": call, "seconds": seconds})


def handshake(**facts: _Value) -> None:
    """Write the line of a connection that failed before there was a call."""
    LOG.info("", extra={"call": {"outcome": "handshake failed", **facts}})


def start() -> None:
    """Send the lines to stderr, unchanged."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Lines())
    LOG.addHandler(handler)
    LOG.propagate = False
    LOG.setLevel(logging.INFO)


class _Lines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        return json.dumps({"time": time, **getattr(record, "call", {})})
