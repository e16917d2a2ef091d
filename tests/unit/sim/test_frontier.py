"""``fairwall results frontier``: on made-up runs of the training game, and, slowly, on one that it plays."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from fairwall.errors import UserError
from sim.games import read
from sim.games.training.frontier import frontier
from sim.runs.trials import summarise
from tests.support.command import SMALL, fairwall
from tests.unit.sim.test_training_report import TOLD, in_terminal, lines_of, run_of, sweep_of, terminal, words


def test_rates_have_no_front() -> None:
    sweep = sweep_of(TOLD)
    lines = lines_of(sweep)
    with pytest.raises(UserError, match="no model"):
        frontier(sweep, lines, summarise(sweep, lines))


@pytest.mark.check
def test_frontier_draws_a_finished_run_overall_and_by_group(tmp_path: Path) -> None:
    run = run_of(tmp_path)
    before = (run / "trials.jsonl").read_bytes()
    finished = fairwall("results", "frontier", run)
    assert finished.returncode == 0, finished.stderr
    assert max(map(len, finished.stdout.splitlines()[:-1])) <= 80
    assert "Here: 4 of 4 cells." in " ".join(finished.stdout.split())
    assert finished.stdout.splitlines()[-1] == f"frontier: {run / 'frontier.html'}"
    text = (run / "frontier.html").read_text()
    assert len(re.findall("<figure", text)) == 3
    assert not re.search(r'(?:src|href)="(?!#|data:text/csv)', text)
    assert "Means are compared" in words(text)
    assert (run / "trials.jsonl").read_bytes() == before


def test_four_swept_keys_leave_room_for_every_number() -> None:
    text = (
        TOLD.partition("[training]")[0]
        + """
[training]
model = "lr"
[sweep]
"training.model" = ["fair-lr", "pflr*"]
"training.epsilon" = [0.25, 2]
"training.strength" = [1, 1000]
"training.holds_protected" = [false, true]
"""
    )
    sweep = sweep_of(text)
    lines = lines_of(sweep)
    for place, line in enumerate(lines):
        # All on the front, with gaps on either side of 0.
        worse = place // 8
        line["accuracy"] -= 0.01 * worse
        line["gap"] = (-1) ** worse * (0.3 - 0.015 * worse)
        line["promised"] = 0.0314
    for shown in (frontier(sweep, lines, summarise(sweep, lines)).shown, terminal(sweep, lines)):
        told = in_terminal(shown)
        assert all(f"{cell['accuracies'][1]:.3f}".removeprefix("0") in told for cell in summarise(sweep, lines))
        assert len(re.findall(r"\.\d{3} \[", told)) == 32
    assert told.count("0.0314") == 16


def refused(*arguments: object, cwd: Path) -> str:
    finished = fairwall("results", "frontier", *arguments, cwd=cwd)
    assert (finished.returncode, finished.stdout) == (2, "")
    (said,) = finished.stderr.splitlines()
    return said


def test_frontier_refuses_what_has_no_front(tmp_path: Path) -> None:
    (tmp_path / "reveal.toml").write_text(SMALL)
    assert "the reveal game has no front" in refused("reveal.toml", cwd=tmp_path)
    assert list(tmp_path.iterdir()) == [tmp_path / "reveal.toml"]
    (tmp_path / "empty").mkdir()
    assert "it has no scenario.toml" in refused("empty", cwd=tmp_path)
    (tmp_path / "empty" / "scenario.toml").write_text(SMALL)
    assert "the reveal game has no front" in refused("empty", cwd=tmp_path)
    run = run_of(tmp_path, lines=[])
    assert "no trial finished" in refused(run, cwd=tmp_path)
    assert "leave the options out" in refused(run, "--trials", 3, cwd=tmp_path)
    assert "no scenario or file" in refused("nowhere", cwd=tmp_path)
    (run / "trials.jsonl").write_text(json.dumps({"trial": 0, "training.model": "lr"}) + "\n")
    assert "is not as a run of its scenario writes it" in refused(run, cwd=tmp_path)
    (run / "scenario.toml").write_text(TOLD.replace("{trials}", "8"))
    told = lines_of(sweep_of(TOLD))
    (run / "trials.jsonl").write_text("".join(json.dumps(one) + "\n" for one in told))
    assert "trains no model" in refused(run, cwd=tmp_path)


GERMAN = """
[scenario]
name = "german"
game = "training"
trials = 2
[data]
source = "german"
[training]
model = "lr"
epsilon = 1.0
holds_protected = true
[sweep]
"training.model" = ["lr", "fair-lr", "priv-lr"]
"""


@pytest.mark.slow
def test_frontier_plays_a_scenario(tmp_path: Path) -> None:
    (tmp_path / "german.toml").write_text(GERMAN)
    finished = fairwall(
        "results", "frontier", "german.toml", "--set", "training.epsilon=2", "--out", "out", cwd=tmp_path
    )
    assert finished.returncode == 0, finished.stderr
    (run,) = (tmp_path / "out").iterdir()
    assert {"report.html", "frontier.html", "trials.jsonl"} <= {path.name for path in run.iterdir()}
    assert read(str(run / "scenario.toml")).scenario.training.epsilon == 2
    assert fairwall("verify", run).returncode == 0
    assert fairwall("results", "frontier", run).stdout.splitlines()[:-1] == finished.stdout.splitlines()[:-1]
