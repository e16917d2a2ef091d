"""Whether a ledger can be written, as the service's health tells it."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace

import pytest

from compliance.ledger import Ledger, writable
from compliance.ledger.writable import Writable


def test_readiness_follows_the_ledger_and_is_looked_at_once_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = [100.0]
    monkeypatch.setattr(writable, "time", SimpleNamespace(monotonic=lambda: now[0]))
    caplog.set_level(logging.INFO, writable.__name__)
    ledger = Ledger(tmp_path / "ledger.sqlite")
    is_writable = Writable(ledger)
    assert is_writable()
    ledger._store.db.execute("PRAGMA query_only = 1")
    now[0] += 0.9
    assert is_writable(), "what was found holds for a second"
    now[0] += 0.1
    assert not is_writable()
    ledger._store.db.execute("PRAGMA query_only = 0")
    now[0] += 0.9
    assert not is_writable()
    now[0] += 0.1
    assert is_writable()
    said = [record.getMessage().partition(":")[0] for record in caplog.records]
    assert said == ["not ready", "ready again"], "each turn once"
    ledger.close()
