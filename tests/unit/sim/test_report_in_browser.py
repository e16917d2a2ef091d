"""Reports of runs in a real browser: on wide and narrow pages, light and dark, they are fit for everybody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import AXE, CHROMIUM, cut_off, grave_faults, launched
from tests.unit.sim.test_verdict_cards import RUNS, _written

if CHROMIUM is None:
    pytest.skip("no browser is installed: chromium", allow_module_level=True)
pytest.importorskip("playwright.sync_api", reason="playwright is not installed", exc_type=ImportError)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with launched() as started:
        yield started


@pytest.mark.check
@pytest.mark.usefixtures("rendered")
def test_reports_are_fit_for_everybody(browser: Any, tmp_path: Path) -> None:
    if not AXE.exists():
        pytest.skip("axe-core is not installed: make browser")
    page = tmp_path / "report.html"
    page.write_text(_written(tmp_path, RUNS["demo"](6)), encoding="utf-8")
    for width, scheme in ((1400, "light"), (390, "dark")):
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        tab = context.new_page()
        left: list[str] = []
        tab.on("request", lambda request, left=left: left.append(request.url))
        tab.goto(f"file://{page}")
        assert left == [f"file://{page}"], "nothing is fetched"
        for closed in tab.locator("details").all()[:3]:
            closed.locator("summary").click()
        assert grave_faults(tab) == [], (width, scheme)
        assert tab.evaluate("document.documentElement.scrollWidth") <= width
        context.close()


@pytest.mark.check
@pytest.mark.usefixtures("rendered")
@pytest.mark.parametrize("name", ["demo", "disclosure", "inference"])
def test_nothing_of_a_report_is_cut_off(browser: Any, name: str, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(_written(tmp_path, RUNS[name](6)), encoding="utf-8")
    for width in (390, 1200):
        tab = browser.new_page(viewport={"width": width, "height": 900})
        tab.goto(f"file://{page}")
        assert cut_off(tab) == [], width
        # A figure that is drawn twice is shown once.
        assert tab.evaluate(
            "[...document.querySelectorAll('figure')].every("
            "(figure) => [...figure.querySelectorAll('svg')].filter((svg) => svg.clientWidth).length === 1)"
        )
        tab.close()
