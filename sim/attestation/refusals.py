"""Refused calls, counted in a service's log: the ledger keeps charges, and a refusal is charged nothing."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from fairwall.errors import UserError

_LONGEST_LINE = 1 << 16
_LONGEST_WORD = 200

_STARTS = re.compile(rb"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \w+ (starting|SIGHUP): ")
"""The beginning of a line that a service writes before it has calls."""


class LogError(UserError):
    """A log that cannot be read, or a file that is no log. Its text is one line."""


def count(logs: Sequence[Path], dataset: str | None = None, caller: str | None = None) -> dict[str, Any]:
    """Return the refused calls in the lines written by `fairwall.rpc.journal`; other lines are skipped.

    The result has ``logs`` by name and SHA-256, ``from`` and ``to``, the first and last call's time, and ``calls``:
    their number by caller, method, data set (None where the refusal came before it was known) and reason. ``dataset``
    and ``caller``, as the log writes it, such as "developer/alice", restrict the count.
    """
    files, times, counts = [], [], Counter[tuple[str, str, str, str]]()
    for log in logs:
        try:
            text = log.read_bytes()
        except OSError as error:
            raise LogError(f"{log}: cannot be read: {error.strerror}") from None
        files.append({"name": log.name, "digest": {"sha256": hashlib.sha256(text).hexdigest()}})
        calls = list(_calls(text))
        if not calls and not any(map(_is_of_a_service, text.splitlines())):
            raise LogError(f"{log}: {_looks(text)}, and not what a service wrote to stderr: give that, as it wrote it")
        for call in calls:
            times.append(call["time"])
            asked = (call["caller"], call["method"], call.get("dataset", ""), call.get("reason", ""))
            if call["outcome"] == "refused" and dataset in (None, asked[2]) and caller in (None, asked[0]):
                counts[asked] += 1
    return {
        "logs": files,
        "from": min(times, default=None),
        "to": max(times, default=None),
        "calls": [
            {"caller": who, "method": method, "dataset": about or None, "reason": reason, "calls": many}
            for (who, method, about, reason), many in sorted(counts.items())
        ],
    }


def _is_of_a_service(line: bytes) -> bool:
    return _STARTS.match(line) is not None or (line.startswith(b"{") and b'"handshake failed"' in line)


def _looks(text: bytes) -> str:
    if not text:
        return "is empty"
    if text.startswith(b"\x1f\x8b"):
        return "is compressed by gzip"
    return "has no line about a call, nor of a service's start"


def _calls(text: bytes) -> Iterator[dict[str, str]]:
    for line in text.splitlines():
        if not line.startswith(b"{") or len(line) > _LONGEST_LINE:
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        words = {name: value for name, value in found.items() if _is_word(value)}
        if {"time", "caller", "method", "outcome"} <= words.keys():
            try:
                datetime.fromisoformat(words["time"])
            except ValueError:
                continue
            yield words


def _is_word(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _LONGEST_WORD and value.isprintable()
