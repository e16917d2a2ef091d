"""The disclosure game through real processes: every mode, twins that cheat, and what cannot be played."""

from __future__ import annotations

import io
import json
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sim.games import lay_out, read
from sim.play import runner
from sim.replay import playing
from sim.replay.recorded import open_run
from sim.runs.folder import RunFolder
from sim.scenarios.sweep import ScenarioError
from sim.verify.check import verify
from tests.e2e.test_verify_reports import Twins, played, reported, submitting, twins
from tests.support.terminal_output import terminal

__all__ = ["twins"]

TOY = """
[scenario]
name = "toy"
game = "disclosure"
trials = 6
seed = 2
[disclosure]
mode = "presence"
people = 40
epsilon = 1.0
[[sweep]]
"disclosure.mode" = ["presence"]
"disclosure.alice" = ["drawn"]
"disclosure.knows" = ["others"]
"disclosure.cells" = [2]
"disclosure.epsilon" = [1.0]
[[sweep]]
"disclosure.mode" = ["attribute"]
"disclosure.alice" = ["in", "out"]
"disclosure.knows" = ["others"]
"disclosure.cells" = [2]
"disclosure.epsilon" = ["inf"]
[[sweep]]
"disclosure.mode" = ["inferential"]
"disclosure.alice" = ["out"]
"disclosure.knows" = ["law"]
"disclosure.cells" = [1]
"disclosure.epsilon" = [1.0]
[[sweep]]
"disclosure.mode" = ["identity"]
"disclosure.alice" = ["in"]
"disclosure.knows" = ["law"]
"disclosure.cells" = [100000]
"disclosure.epsilon" = ["inf"]
"""
ONE = TOY.partition("[[sweep]]")[0].replace("trials = 6", "trials = 1").replace("epsilon = 1.0", "") + "alice='drawn'\n"


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("disclosure"), TOY)


def lines_of(folder: Path) -> dict[tuple[str, bool], list[dict[str, Any]]]:
    cells: dict[tuple[str, bool], list[dict[str, Any]]] = {}
    for text in (folder / "trials.jsonl").read_text().splitlines():
        line = json.loads(text)
        cells.setdefault((line["mode"], line["disclosure.alice"] == "out"), []).append(line)
    return cells


@pytest.mark.check
def test_each_mode_tells_what_its_law_says(toy: Path) -> None:
    cells = lines_of(toy)
    assert {line["prior"] for lines in cells.values() for line in lines} == {0.5}
    # An exact count and everybody else's answer give Alice's away; without her it says nothing.
    assert {line["posterior_of_truth"] for line in cells["attribute", False]} == {1.0}
    assert {line["posterior"] for line in cells["attribute", True]} == {0.5}
    # Of 100,000 combinations of quasi-identifiers hers is her own.
    assert all(line["linked"] and line["candidates"] == 1 for line in cells["identity", False])
    # What the study teaches is about her too, though she is not in it.
    learnt = cells["inferential", True]
    assert min(max(line["posterior"], 1 - line["posterior"]) for line in learnt) > 0.85
    assert all(line["advantage_law"] > line["bound"] and not line["bound_applies"] for line in learnt)
    for line in cells["presence", False]:
        assert line["advantage_law"] == pytest.approx(line["bound"])
        assert 1 / (1 + 2.7183) < line["posterior"] < 2.7183 / (1 + 2.7183)
        assert (line["takes_part"], line["epsilon_spent"]) == (line["secret"] == 1, 1.0)


@pytest.mark.check
def test_it_verifies_and_replays_bit_for_bit(toy: Path) -> None:
    found = verify(toy)
    assert not found.findings
    assert not [note for note in found.notes if note.startswith("not checked")]
    again = playing.again(open_run(toy))
    assert (again.difference, again.trials) == (None, 30)


def test_the_report_shows_prior_posterior_advantage_and_bound(toy: Path) -> None:
    page = (toy / "report.html").read_text()
    for words in ("Inferential disclosure", "posterior of the truth", "which is no bound here", "Sweeney", "<svg"):
        assert words in page
    summary = json.loads((toy / "result.json").read_text())["summary"]
    console = Console(width=80, file=io.StringIO())
    with console.capture() as printed:
        console.print(terminal(read(str(toy / "scenario.toml")), [], summary))
    shown = printed.get()
    assert max(map(len, shown.splitlines())) <= 80
    assert re.search(r"inferential +out +law +1 +1 ", shown)
    assert "0.46*" in shown


@pytest.mark.slow
def test_a_run_that_was_broken_off_is_resumed(toy: Path, tmp_path: Path) -> None:
    folder = tmp_path / toy.name
    shutil.copytree(toy, folder)
    path = folder / "trials.jsonl"
    whole = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(line) + "\n" for line in whole[:-1]))
    sweep = read(str(folder / "scenario.toml"))
    resumed = runner.play(sweep, RunFolder.resume(folder, sweep), lambda _: None)
    assert [{**line, "seconds": 0} for line in resumed.trials] == [{**line, "seconds": 0} for line in whole]


# Twins.

NO_NOISE = """
from compliance.answers.studies import Study
honest = Study.tabulated
Study.tabulated = lambda study, request_id, epsilon: honest(study, request_id, float("inf"))
"""
SPENDS_LESS = """
from compliance.answers.studies import Study
Study.spent = property(lambda study: 0.5)
"""
TWINS: dict[str, tuple[Mapping[str, str], str]] = {
    "compliance without noise": ({"compliance": NO_NOISE}, "compliance releases table-1"),
    "compliance that spends otherwise": (
        {"compliance": SPENDS_LESS},
        "compliance reports: epsilon_spent is 0.5, recomputed 1.0",
    ),
    **{
        f"a developer with another {name}": (
            {"developer": submitting("SubmitPosterior", change, "developer.disclosure", "DisclosureService")},
            f"developer reports: {name} is ",
        )
        for name, change in {
            "posterior": "request.posterior = 0.999",
            "guess": "request.guess = not request.guess",
        }.items()
    },
}


@pytest.mark.slow
@pytest.mark.parametrize(("parties", "text"), TWINS.values(), ids=TWINS)
def test_a_party_that_cheats_is_named(tmp_path: Path, twins: Twins, parties: Mapping[str, str], text: str) -> None:
    twins(parties)
    texts = reported(verify(played(tmp_path, ONE + "epsilon = 1.0\n")))
    assert any(one.startswith(f"deal-1: {text}") for one in texts), texts


def test_a_line_that_says_otherwise_is_found(toy: Path, tmp_path: Path) -> None:
    folder = tmp_path / toy.name
    shutil.copytree(toy, folder)
    path = folder / "trials.jsonl"
    path.write_text(path.read_text().replace('"linked": true', '"linked": false', 1))
    assert {finding.check for finding in verify(folder).findings} == {"file", "reported"}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"epsilon": 0}, 'disclosure.epsilon: must be a positive number or "inf"'),
        ({"epsilon": 0.001}, 'disclosure.epsilon: must be at least 0.01, or "inf", not 0.001'),
        ({"alice": "in"}, "disclosure.alice: is .* in mode presence, where it is the secret"),
        ({"mode": "attribute"}, "disclosure.alice: is "),
        ({"mode": "inferential", "alice": "in", "knows": "others"}, "disclosure.knows: must be .* in mode inferential"),
        ({"mode": "membership"}, "disclosure.mode: "),
        ({"cells": 0}, "disclosure.cells: "),
        ({"rate": 0.5}, "disclosure.rate: "),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(asked: dict[str, Any], words: str) -> None:
    values = {"mode": "presence", "alice": "drawn", "epsilon": 1.0, **asked}
    with pytest.raises(ScenarioError, match=words) as refused:
        lay_out({"scenario": {"name": "bad", "game": "disclosure"}, "disclosure": values}, "bad.toml")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"release": {"protocol": "grr"}}, "release: is a table of the release game"),
        ({"compliance": {"mechanism": "laplace", "epsilon": 1.0}}, "compliance: no metric is asked for"),
    ],
)
def test_it_takes_no_key_of_another_game(table: dict[str, Any], words: str) -> None:
    values = {"mode": "presence", "alice": "drawn", "epsilon": 1.0}
    with pytest.raises(ScenarioError, match=words):
        lay_out({"scenario": {"name": "bad", "game": "disclosure"}, "disclosure": values, **table}, "bad.toml")
