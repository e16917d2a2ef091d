"""Pages in a real browser: where it is, and what a page has that is not fit for everybody."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

AXE = Path(__file__).parents[1] / "browser" / "node_modules" / "axe-core" / "axe.min.js"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@contextmanager
def launched() -> Iterator[Any]:
    """Start the browser; a test without one is skipped."""
    if CHROMIUM is None:
        pytest.skip("no browser is installed: chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed", exc_type=ImportError)
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


def grave_faults(tab: Any) -> list[tuple[str, list[str]]]:
    """Return axe-core's serious and critical violations in a page: each one's name, and its first elements."""
    tab.evaluate(AXE.read_text() + "; undefined")
    found = tab.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [
        (one["id"], [node["html"][:120] for node in one["nodes"][:3]])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]


def cut_off(tab: Any) -> list[str]:
    """Say what of a page's drawings and boxes cannot be seen, or not read, without scrolling sideways."""
    found: list[str] = tab.evaluate(
        """() => {
        const wide = document.documentElement.clientWidth;
        const told = document.documentElement.scrollWidth > wide ? ["the page"] : [];
        // A large table may scroll in its box, where rows hold what they are about; on a narrow page rows are lists.
        const boxes = `main *:not(svg *)${wide > 640 ? ":not(.scroll)" : ""}`;
        for (const box of document.querySelectorAll(boxes))
            if (/auto|scroll|hidden/.test(getComputedStyle(box).overflowX) && box.clientWidth > 1
                && box.scrollWidth > box.clientWidth + 1)
                told.push(`${box.tagName}.${box.className} scrolls`);
        for (const svg of document.querySelectorAll("main svg")) {
            const own = svg.getBoundingClientRect();
            if (!own.width) continue;
            if (own.left < 0 || own.right > wide) told.push(`${svg.parentElement.className} drawing lies outside`);
            const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
            const places = texts.map((text) => text.getBoundingClientRect());
            for (const [place, box] of places.entries())
                if (box.left < own.left - 2 || box.right > own.right + 2 || box.top < own.top - 2
                    || box.bottom > own.bottom + 2)
                    told.push(`"${texts[place].textContent.trim()}" is cut`);
            const heights = places.map((box) => Math.min(box.height, box.width * 2)).sort((one, other) => one - other);
            const usual = heights[heights.length >> 1];
            if (usual < 8) told.push(`texts of ${usual} px`);
        }
        return told;
        }"""
    )
    return found
