"""Reports without the rendering of their figures, which is most of what a report takes."""

from __future__ import annotations

from typing import IO, Any

import pytest
from matplotlib.figure import Figure


@pytest.fixture
def rendered() -> None:
    """Ask for figures as they are."""


@pytest.fixture(autouse=True)
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have figures made but not rendered, in tests that do not ask for `rendered`."""

    def savefig(_: Figure, file: IO[str], **__: Any) -> None:
        file.write("<svg></svg>")

    if "rendered" not in request.fixturenames:
        monkeypatch.setattr(Figure, "savefig", savefig)
