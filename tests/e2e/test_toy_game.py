"""A game that nothing but the table of games knows: it plays, verifies, replays, resumes and reports like any other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sim.games import MODULES, lay_out
from sim.play import runner
from sim.replay import playing
from sim.replay.recorded import open_run
from sim.runs.folder import RunFolder
from sim.runs.page import write_report
from sim.scenarios.sweep import ScenarioError, Sweep
from sim.verify.check import verify
from tests.support import toy_game

VALUES: dict[str, Any] = {
    "scenario": {"name": "a coin", "game": "coin", "trials": 3, "seed": 5},
    "sweep": {"coin.bias": [0.5, 1.0]},
}


@pytest.fixture
def sweep(monkeypatch: pytest.MonkeyPatch) -> Sweep:
    monkeypatch.setitem(MODULES, "coin", toy_game.__name__)
    return lay_out(VALUES, "coin.toml")


def with_secret(secret: str) -> Sweep:
    return lay_out({**VALUES, "scenario": {**VALUES["scenario"], "secret": secret}}, "coin.toml")


def played(sweep: Sweep, folder: RunFolder) -> runner.FinishedRun:
    runner.check(sweep)
    return runner.play(sweep, folder, lambda _: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], runner.FinishedRun]:
    """Each kind of secret's run, which is played once."""

    @cache
    def play(secret: str) -> runner.FinishedRun:
        return played(with_secret(secret), RunFolder.create(tmp_path_factory.mktemp("whole"), "coin"))

    return play


def test_it_costs_at_most_80_lines() -> None:
    assert len([line for line in Path(toy_game.__file__).read_text().splitlines() if line.strip()]) <= 80


@pytest.mark.check
@pytest.mark.parametrize("secret", ["random", pytest.param("seed", marks=pytest.mark.slow)])
@pytest.mark.usefixtures("sweep")
def test_it_plays_verifies_replays_resumes_and_reports(
    secret: str, whole: Callable[[str], runner.FinishedRun], tmp_path: Path
) -> None:
    run = whole(secret)
    assert [line["heads"] for line in run.trials[3:]] == [True] * 3
    assert [(cell["coin.bias"], cell["trials"]) for cell in run.summary] == [(0.5, 3), (1.0, 3)]
    assert "A coin was flipped." in write_report(run.folder).read_text()
    found = verify(run.folder)
    assert not found.findings
    assert found.transcripts == 4
    again = playing.again(open_run(run.folder))
    assert (again.difference, again.trials) == (None, 6)

    folder = shutil.copytree(run.folder, tmp_path / run.folder.name)
    lines = folder / "trials.jsonl"
    told = [json.loads(line) for line in lines.read_text().splitlines()]
    lines.write_text("".join(json.dumps(line) + "\n" for line in told[:2]))
    sweep = with_secret(secret)
    resumed = played(sweep, RunFolder.resume(folder, sweep))
    assert [{**line, "seconds": 0} for line in resumed.trials] == [{**line, "seconds": 0} for line in told]


@pytest.mark.usefixtures("sweep")
def test_a_line_that_says_otherwise_is_found(whole: Callable[[str], runner.FinishedRun], tmp_path: Path) -> None:
    run = whole("random")
    folder = shutil.copytree(run.folder, tmp_path / run.folder.name)
    path = folder / "trials.jsonl"
    path.write_text(path.read_text().replace('"heads": true', '"heads": false'))
    assert "reported" in {finding.check for finding in verify(folder).findings}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"developer": {"strategy": "best"}}, "developer: is a table of the"),
        ({"coin": {"defence": "fft"}}, "coin.defence: unknown key"),
        ({"sweep": {"developer.queries": [1, 2]}}, "developer.queries: is a key of the reveal game, not of the coin"),
    ],
)
def test_it_takes_no_key_of_another_game(sweep: Sweep, table: dict[str, Any], words: str) -> None:
    with pytest.raises(ScenarioError, match=words):
        lay_out({**VALUES, **table}, "coin.toml")
