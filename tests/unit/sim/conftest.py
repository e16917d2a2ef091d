"""Reports without their figures' drawings, which are most of what a report takes."""

from __future__ import annotations

import pytest

from sim.report import drawing


@pytest.fixture
def rendered() -> None:
    """Ask for figures as they are."""


@pytest.fixture(autouse=True)
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no figure drawn, in tests that do not ask for `rendered`."""
    if "rendered" not in request.fixturenames:
        monkeypatch.setattr(drawing, "_svg", lambda *_: "<svg></svg>")
