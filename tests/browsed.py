"""Pages in a real browser: where it is, and what a page has that is not fit for everybody."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

AXE = Path(__file__).parent / "browser" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def grave_faults(tab: Any) -> list[tuple[str, list[str]]]:
    """Return axe-core's serious and critical violations in a page: each one's name, and its first elements."""
    tab.evaluate(AXE.read_text() + "; undefined")
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        (one["id"], [node["html"][:120] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
