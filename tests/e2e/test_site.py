"""The documentation's site: it builds without a warning, and its pages load nothing from elsewhere."""

from __future__ import annotations

import fcntl
import os
import re
import runpy
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = [
    pytest.mark.check,
    pytest.mark.skipif(find_spec("mkdocs") is None, reason="MkDocs is not installed: `make site` installs it"),
    pytest.mark.skipif(not (ROOT / "scripts/site/node_modules").exists(), reason="`make site` installs Mermaid"),
]


class _Page(HTMLParser):
    """What a page loads, where it leads, and the identifiers in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.marks: set[str] = set()
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "srcset", "href"):
                (self.leads if tag == "a" else self.loads).append(value or "")
            if name in ("id", "name"):
                self.marks.add(value or "")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site as `make site` does, once for all workers: it takes a minute."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "site"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
            env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
            done = subprocess.run(build, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
            assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, _Page]:
    return {path: _Page(path) for path in site.rglob("*.html")}


def test_every_page_is_in_the_site(site: Path) -> None:
    expected = {page.with_suffix(".html").name for page in (ROOT / "docs").glob("*.md")}
    assert expected | {"index.html", "changelog.html"} <= {page.name for page in site.glob("*.html")}


def test_pages_load_nothing_from_elsewhere(site: Path, pages: dict[Path, _Page]) -> None:
    assert sum(len(page.loads) for page in pages.values()) > len(pages)
    for path, page in pages.items():
        for loaded in page.loads:
            assert "//" not in loaded, path
            if path.name != "404.html" and not loaded.startswith("data:"):
                assert (path.parent / loaded.split("?")[0].split("#")[0]).resolve().exists(), (path, loaded)
    for style in site.rglob("*.css"):
        assert not re.search(r"url\(['\"]?(?:https?:)?//|@import", style.read_text()), style


def test_links_within_the_site_lead_somewhere(site: Path, pages: dict[Path, _Page]) -> None:
    for path, page in pages.items():
        for link in page.leads:
            if path.name == "404.html" or re.match(r"[a-z]+:", link):
                continue
            to, _, mark = link.partition("#")
            target = (path.parent / to).resolve() if to else path
            assert target.is_file() or (target / "index.html").is_file(), (path, link)
            assert not mark or target not in pages or mark in pages[target].marks, (path, link)


def test_diagrams_are_drawn_by_a_script_of_the_site(site: Path, pages: dict[Path, _Page]) -> None:
    """The theme fetches Mermaid from the network where nothing named `mermaid` is there before it."""
    drawn = [path for path in pages if 'class="mermaid"' in path.read_text()]
    assert {path.name for path in drawn} == {"architecture.html", "protocol.html"}
    for path in drawn:
        assert path.read_text().index("assets/mermaid.js") < path.read_text().index("assets/javascripts/bundle")
    assert 'globalThis["mermaid"]' in (site / "assets/mermaid.js").read_text()


def test_the_reference_has_the_docstrings(site: Path, pages: dict[Path, _Page]) -> None:
    assert {"fairwall.run", "fairwall.client.AuditClient.ask", "fairwall.tools.scoring.GapScorer"} <= (
        pages[site / "api.html"].marks
    )


@pytest.mark.parametrize(
    "element",
    [
        '<script src="https://unpkg.com/mermaid@11/dist/mermaid.min.js"></script>',
        '<link rel="stylesheet" href="https://fonts.googleapis.com/css?family=Roboto">',
        "<img alt='a' src=//example.org/a.png>",
        "<img src='http://example.org/a.png'>",
    ],
)
def test_a_page_that_loads_something_from_elsewhere_is_not_built(element: str) -> None:
    hooks = runpy.run_path(str(ROOT / "scripts/site/hooks.py"))
    page = SimpleNamespace(url="a.html")
    link = '<body><a href="https://example.org">elsewhere</a></body>'
    assert hooks["on_post_page"](link, page=page) == link
    with pytest.raises(Exception, match=r"a\.html would load .*//"):
        hooks["on_post_page"](link + element, page=page)
