"""A file that is given for something else than it is, is refused, and nothing is told of what was not read."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from sim.attestation import refusals

CALL = {"time": "2026-01-02T03:04:05.678+00:00", "caller": "developer/alice", "method": "Audit", "outcome": "refused"}
START = "2026-01-02 03:04:05 INFO starting: policy.toml: loans"
NO_LOGS = {
    "random bytes": (bytes(range(256)) * 9, "has no line about a call"),
    "a table": (b"id,sex\n1,f\n", "has no line about a call"),
    "another program's log": (b"2026-01-02 03:04:05 INFO connected\n", "has no line about a call"),
    "journald's words before each line": (b"Jan 2 host fairwall[1]: " + json.dumps(CALL).encode(), "has no line"),
    "a call at no time": (json.dumps(CALL | {"time": "noon"}).encode(), "has no line about a call"),
    "gzip": (gzip.compress(json.dumps(CALL).encode()), "is compressed by gzip"),
    "nothing": (b"", "is empty"),
}


@pytest.mark.parametrize("kind", NO_LOGS)
def test_a10_a_file_that_is_no_service_s_log_is_refused(kind: str, tmp_path: Path) -> None:
    content, said = NO_LOGS[kind]
    (tmp_path / "own.log").write_text(json.dumps(CALL))
    (tmp_path / "log").write_bytes(content)
    with pytest.raises(refusals.LogError, match=said) as refused:
        refusals.count([tmp_path / "own.log", tmp_path / "log"])
    assert str(tmp_path / "log") in str(refused.value)


@pytest.mark.parametrize("line", [START, json.dumps({"time": CALL["time"], "outcome": "handshake failed"})])
def test_a_log_in_which_nobody_was_refused_is_one(line: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text(line)
    assert refusals.count([tmp_path / "log"])["calls"] == []
