"""The wheel, built from this tree: the packages and the pages come with it."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=True)
    (built,) = folder.iterdir()
    return zipfile.Path(built)


def test_the_pages_come_with_the_wheel(wheel: zipfile.Path) -> None:
    pages = [page for page in (ROOT / "docs").rglob("*") if page.is_file()]
    assert len(pages) > 25
    for page in pages:
        assert (wheel / "fairwall" / page.relative_to(ROOT).as_posix()).read_bytes() == page.read_bytes()


def test_the_wheel_has_the_packages_and_no_more(wheel: zipfile.Path) -> None:
    info = "fairwall-0.1.0.dist-info"
    assert {path.name for path in wheel.iterdir()} == {"fairwall", "compliance", "developer", "adversary", "sim", info}
    assert not (wheel / "fairwall" / "proto").exists()


def test_papers_come_with_the_wheel_and_their_evidence_does_not(wheel: zipfile.Path) -> None:
    names = {path.name for path in (wheel / "sim" / "papers").iterdir()}
    assert {path.name for path in (ROOT / "sim" / "papers").glob("*.toml")} <= names
    assert (ROOT / "sim" / "papers" / "evidence").is_dir()
    assert "evidence" not in names


def test_presets_of_laws_come_with_the_wheel(wheel: zipfile.Path) -> None:
    laws = Path("compliance", "deployment", "policy", "laws")
    names = {path.name for path in (wheel / laws.as_posix()).iterdir()}
    assert names == {path.name for path in (ROOT / laws).glob("*.toml")} != set()


def test_the_style_sheet_of_figures_comes_with_the_wheel(wheel: zipfile.Path) -> None:
    sheet = wheel / "fairwall" / "paper.mplstyle"
    assert sheet.read_bytes() == (ROOT / "proto" / "fairwall" / "paper.mplstyle").read_bytes()


def test_the_pages_are_text_and_small_pictures(wheel: zipfile.Path) -> None:
    """Whoever installs the client alone has them too."""
    sizes = {
        info.filename: info.file_size for info in wheel.root.infolist() if info.filename.startswith("fairwall/docs/")
    }
    assert {Path(name).suffix for name in sizes} <= {".md", ".svg", ".png", ".ipynb", ".toml", ".csv"}
    assert sum(sizes.values()) < 1_000_000
