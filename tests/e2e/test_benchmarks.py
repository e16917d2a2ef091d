"""Every benchmark runs: once, short, each in a process of its own, and prints figures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.browsed import CHROMIUM

ROOT = Path(__file__).parents[2]
BENCHMARKS = [
    path for path in sorted((ROOT / "benchmarks").glob("*.py")) if "__main__" in path.read_text(encoding="utf-8")
]
FIGURE = re.compile(r"\d+\.\d|\d+ ")


def run(path: Path, *options: str) -> str:
    """Run a benchmark short; what it prints."""
    if path.stem == "viewer" and CHROMIUM is None:
        pytest.skip("no browser is installed: chromium")
    # One thread each: the machine has others to do.
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, str(path), "--short", *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_folder_has_benchmarks() -> None:
    assert len(BENCHMARKS) > 15


@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", BENCHMARKS, ids=lambda path: path.stem)
@pytest.mark.check
def test_a_benchmark_runs(path: Path) -> None:
    measured = ROOT / "sim" / "scenarios" / "measured" / "minutes.toml"
    before = measured.read_bytes()
    assert FIGURE.search(run(path))
    assert measured.read_bytes() == before, "what was measured stays"


def test_the_cheapest_benchmark_runs() -> None:
    # The others run with `make check`.
    assert FIGURE.search(run(ROOT / "benchmarks" / "ep_games.py"))


@pytest.mark.check
def test_the_widths_of_guaranteed_intervals_are_measured_too() -> None:
    assert "half-width of scores near one" in run(ROOT / "benchmarks" / "shapes.py", "--guaranteed")
