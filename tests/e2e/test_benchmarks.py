"""Every benchmark runs: once, short, each in a process of its own, and prints figures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.browser import CHROMIUM

ROOT = Path(__file__).parents[2]
BENCHMARKS = [
    path for path in sorted((ROOT / "benchmarks").glob("*.py")) if "__main__" in path.read_text(encoding="utf-8")
]
SHARED = ROOT.parent / "shared" / "data"
VERDICTS = ROOT / "benchmarks" / "verdicts.py"
EPSILONS = ("0.1", "0.2", "0.5", "1", "2", "5")
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
@pytest.mark.slow
def test_a_benchmark_runs(path: Path) -> None:
    measured = ROOT / "sim" / "scenarios" / "measured" / "minutes.toml"
    before = measured.read_bytes()
    assert FIGURE.search(run(path))
    assert measured.read_bytes() == before, "what was measured stays"


@pytest.mark.check
def test_the_cheapest_benchmark_runs() -> None:
    # The others run with `make check`.
    assert FIGURE.search(run(ROOT / "benchmarks" / "ep_games.py"))


@pytest.mark.check
def test_the_widths_of_guaranteed_intervals_are_measured_too() -> None:
    assert "half-width of scores near one" in run(ROOT / "benchmarks" / "shapes.py", "--guaranteed")


LINE = re.compile(r"^(\S+) +(\w+(?: by \w+)?) +\d+ .*% +(\S+) +(\S+)   ((?: *\d+/\d+/\d+){6})$", re.MULTILINE)


def least(hundredths: Sequence[int]) -> str:
    """The least epsilon from which on 95 of 100 are as they should be."""
    enough = [epsilon for place, epsilon in enumerate(EPSILONS) if min(hundredths[place:]) >= 95]
    return min(enough, key=float, default="none")


@pytest.mark.check
def test_verdicts_are_told_and_drawn_of_all_tables(tmp_path: Path) -> None:
    files = {"lsac": "bar_pass_prediction.csv.gz", "acs-coverage": "db_ACSCoverage.csv.gz"}
    if missing := [name for name in files.values() if not (SHARED / name).is_file()]:
        pytest.skip(f"{' and '.join(missing)}: not at hand")
    tables = [f"{table}:{SHARED / name}" for table, name in files.items()]
    drawn = tmp_path / "verdicts.svg"
    found = LINE.findall(run(VERDICTS, "--table", *tables, "--figure", str(drawn)))
    assert len(found) == 3 + 3 + 1 + 3 + 3
    for _, _, right, held, counted in found:
        shares = [tuple(map(int, each.split("/"))) for each in counted.split()]
        assert (right, held) == (least([each[0] for each in shares]), least([each[1] for each in shares]))
        assert all(kept + wrong <= 100 for _, kept, wrong in shares)
    assert all(f">{table}<" in drawn.read_text() for table, *_ in found)


@pytest.mark.check
@pytest.mark.parametrize(
    ("table", "said"), [("bank:b.csv", "not one of lsac:PATH"), ("lsac:no-such.csv", "no-such.csv")]
)
def test_a_table_that_cannot_be_read_is_named(table: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, str(VERDICTS), "--short", "--table", table],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
