"""Rows that are in neither group: the terminal, ``result.json`` and the report say how many there were, and why."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

SCENARIO = """
[scenario]
name = "some-are-left-out"
game = "reveal"
[data]
source = "people.csv"
protected = "place"
advantaged = "north"
label = "repaid"
positive = "1"
test_size = 40
{groups}
[compliance]
metric = "sp"
mechanism = "exact"
[developer]
strategy = "single"
"""
NEITHER = "31 of 600 rows were left out: place is neither north nor south"
MISSING = "6 of 600 rows were left out: place is missing"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """600 people: 563 in the north and the south, 31 elsewhere, and 6 whose place is not known."""
    rng = np.random.default_rng(0)
    places = rng.permutation(["north"] * 300 + ["south"] * 263 + ["west"] * 20 + ["east"] * 11 + [""] * 6)
    lines = [f"{place},{rng.integers(2)},{rng.normal():.3f}" for place in places]
    (tmp_path / "people.csv").write_text("\n".join(["place,repaid,income", *lines, ""]), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ('disadvantaged = "south"', [MISSING, NEITHER]),
        # Everybody is in a group then whose place is known.
        pytest.param('disadvantaged = ["south", "west", "east"]', [MISSING], marks=pytest.mark.slow),
    ],
    ids=["two named", "all named"],
)
def test_rows_without_a_group_are_told_of(folder: Path, fairwall: Any, groups: str, said: list[str]) -> None:
    (folder / "s.toml").write_text(
        SCENARIO.format(groups=groups).replace("people.csv", str(folder / "people.csv")), encoding="utf-8"
    )
    finished = fairwall("run", str(folder / "s.toml"))
    assert finished.returncode == 0, finished.stderr
    assert [line for line in finished.stdout.splitlines() if "left out" in line] == said
    (run,) = folder.glob("runs/*")
    kept = json.loads((run / "result.json").read_bytes())["left_out"]
    assert [f"{rows['rows']} of {rows['of']} rows were left out: {rows['why']}" for rows in kept] == said
    page = html.unescape((run / "report.html").read_text(encoding="utf-8"))
    assert all(f"{line}." in page for line in said)
    # The report is the same when it is written again.
    assert fairwall("report", str(run)).returncode == 0
    assert html.unescape((run / "report.html").read_text(encoding="utf-8")) == page


@pytest.mark.check
def test_nothing_is_said_where_every_row_has_a_group(folder: Path, fairwall: Any) -> None:
    finished = fairwall("run", "linear-german", "--trials", "1", "--set", "data.test_size=20", "--out", str(folder))
    assert finished.returncode == 0, finished.stderr
    assert "left out" not in finished.stdout
    (result,) = folder.glob("*/result.json")
    assert json.loads(result.read_bytes())["left_out"] == []
    assert "left out" not in (result.parent / "report.html").read_text(encoding="utf-8")
