"""The game of groups through real processes: what is revealed, twins that cheat, and what cannot be played."""

from __future__ import annotations

import io
import json
import math
import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from developer.groups.decode import decode
from fairwall.rpc.arrays import to_message
from sim.games import lay_out, read
from sim.games.cards import DealError
from sim.games.groups.deal import deal
from sim.games.groups.trial import leakage, most, rights
from sim.replay import playing
from sim.replay.recorded import open_run
from sim.scenarios.sweep import ScenarioError
from sim.verify.check import verify
from tests.e2e.test_verify_reports import Twins, played, reported, submitting, twins
from tests.support.terminal_output import terminal

__all__ = ["twins"]

HEAD = """
[scenario]
name = "toy"
game = "groups"
seed = 4
"""
TOY = (
    HEAD
    + """trials = 5
[groups]
source = "synthetic"
people = 120
epsilon = 1.0
[[sweep]]
"groups.strategy" = ["blocks"]
"groups.models" = [1]
"groups.batches" = [1]
"groups.shares" = [[0.5, 0.5], [0.4, 0.3, 0.2, 0.1]]
"groups.epsilon" = [1, 200]
[[sweep]]
"groups.strategy" = ["halves"]
"groups.models" = [20]
"groups.batches" = [6]
"groups.shares" = [[0.4, 0.3, 0.2, 0.1]]
"groups.epsilon" = [1, "inf"]
"""
)
ONE = HEAD + "trials = 1\n[groups]\nshares = [0.6, 0.3, 0.1]\npeople = 60\nepsilon = 1.0\nmodels = 1\n"


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("groups"), TOY)


def cells_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "result.json").read_text())["summary"]
    return found


@pytest.mark.check
def test_as_much_is_revealed_as_epsilon_and_the_questions_allow(toy: Path) -> None:
    cells = {(cell["strategy"], cell["groups"], cell["epsilon"]): cell for cell in cells_of(toy)}
    assert len(cells) == 6
    # As many exact halves as people, of any number of groups, tell everybody's; a hundred with noise tell nothing.
    assert cells["halves", 4, "inf"]["leakage"] == 100
    assert cells["halves", 4, "inf"]["recovered"] == 120
    for cell in cells.values():
        assert cell["chance"] == 100 / cell["groups"]
        if cell["epsilon"] == 1:
            assert cell["leakage"] < cell["bound"] == pytest.approx(100 / (1 + (cell["groups"] - 1) / math.e**2))
            assert cell["leakage"] < cell["chance"] + 12
        assert cell["epsilon_spent"] == cell["epsilon"]
    assert cells["blocks", 2, 200]["leakage"] > 50


@pytest.mark.check
def test_it_verifies_and_replays_bit_for_bit(toy: Path) -> None:
    found = verify(toy)
    assert not found.findings
    assert not [note for note in found.notes if note.startswith("not checked")]
    assert found.columns == 5 * (1 + 4), "of two groups one tells the other"
    again = playing.again(open_run(toy))
    assert (again.difference, again.trials) == (None, 30)


@pytest.mark.check
def test_a_search_is_played_as_any_strategy(tmp_path: Path) -> None:
    asked = ONE.replace("epsilon = 1.0\nmodels = 1", 'strategy = "searched"\nepsilon = 200.0\nmodels = 6\nbatches = 4')
    folder = played(tmp_path, asked)
    (cell,) = cells_of(folder)
    assert (cell["strategy"], cell["batches"], cell["models"]) == ("searched", 4, 6)
    assert cell["leakage"] > 60
    assert cell["epsilon_spent"] == 200
    assert not verify(folder).findings
    again = playing.again(open_run(folder))
    assert (again.difference, again.trials) == (None, 1)


@pytest.mark.check
def test_the_report_shows_leakage_beside_chance_and_bound(toy: Path) -> None:
    page = (toy / "report.html").read_text()
    for words in ("120 people of 2 to 4 groups", "What epsilon allows about one person", "Who is in which group"):
        assert words in page
    # A figure for two groups, and one for four; a panel for each epsilon.
    drawn = re.findall(r'<figure class="wide">.*?</figure>|<figure>.*?</figure>', page, re.DOTALL)
    assert [set(re.findall(r">ε (\S+)<", figure)) for figure in drawn] == [{"1", "200"}, {"1", "200", "∞"}]
    for cell in cells_of(toy):
        right = [each["mean"] for each in cell["right"].values()]
        assert np.mean(right) == pytest.approx(cell["leakage"]), "somebody is in every group in every trial"
        figure = drawn[len(right) == 4]
        assert all(f" {value:.3f}" in figure for value in (*right, cell["leakage"]))
    console = Console(width=80, file=io.StringIO())
    with console.capture() as printed:
        console.print(terminal(read(str(toy / "scenario.toml")), [], cells_of(toy)))
    assert max(map(len, printed.get().splitlines())) <= 80
    assert "strategy  models  batches" in printed.get()


def test_the_page_has_all_keys_in_their_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "groups.md").read_text()
    *_, block = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (cell,) = lay_out({"scenario": {"name": "page", "game": "groups"}, **tomllib.loads(block)}, "docs").cells
    assert list(tomllib.loads(block)["groups"]) == list(type(cell.scenario.groups).model_fields)


@pytest.mark.parametrize("columns", [["race"], ["race", "sex"]])
def test_a_table_s_columns_are_the_groups(columns: list[str]) -> None:
    asked = {"source": "adult", "columns": columns, "people": 500, "epsilon": 1.0}
    (cell,) = lay_out({"scenario": {"name": "real", "game": "groups"}, "groups": asked}, "real").cells
    dealt = deal(cell, 0, "deal")
    groups = dealt.compliance.groups
    assert groups is not None
    assert groups.sizes == (5, 2)[: len(columns)]
    assert groups.codes.shape == (len(columns), 500)
    assert dealt.shares.sum() == pytest.approx(1)
    seen = np.bincount(dealt.cells, minlength=len(dealt.shares)) / 500
    assert np.abs(seen - dealt.shares).max() < 0.07


def test_balanced_accuracy_counts_groups_alike() -> None:
    cells = np.array([0, 0, 0, 0, 2, 2])
    assert leakage(cells.astype(np.uint8), cells) == 100
    assert leakage(np.array([0, 0, 1, 1, 2, 0], np.uint8), cells) == 50
    assert leakage(np.zeros(6, np.uint8), cells) == 50
    assert rights(np.array([0, 0, 1, 1, 2, 0], np.uint8), cells, 3).tolist() == pytest.approx(
        [50, np.nan, 50], nan_ok=True
    )
    assert [most(epsilon, 3) for epsilon in (0.0, math.log(2) / 2, math.inf)] == pytest.approx([100 / 3, 50, 100])


def test_exact_counts_of_one_person_each_are_read_off() -> None:
    from fairwall.compliance.v1 import group_service_pb2 as wire

    cells = np.array([2, 0, 1])
    table = wire.GroupTable(
        models=[0, 1],
        counts=to_message(np.eye(3)[cells]),
        base=to_message(np.ones((2, 3), np.uint8)),
        hits=to_message(np.array([[0, 0, 1], [0, 1, 1]], np.uint8)),
        rate=math.inf,
    )
    decisions = np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    asked = [(decisions, wire.GroupRelease(groups=3, tables=[table]))]
    assert decode(asked, np.array([0.2, 0.3, 0.5])).tolist() == cells.tolist()


def test_exact_rows_are_read_off_as_exact_counts_are() -> None:
    from fairwall.compliance.v1 import group_service_pb2 as wire

    cells, decisions = np.array([2, 0, 1]), np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 1.0], [1.0, 1.0, 0.0]])
    steps = np.array([[1, 1, 1], [-1, -1, 1], [-1, 1, 1]])
    part = wire.GroupRows(
        counts=to_message((steps @ np.eye(3)[cells]).astype(np.float64)),
        reach=[1, 1, 1],
        base=to_message(np.ones(3, np.uint8)),
        row=[1, 2, 1],
        offset=[0.5, 0.5, 0.5],
        slope=[0.5, 0.5, -0.5],
        rate=math.inf,
    )
    asked = [(decisions, wire.GroupRelease(groups=3, rows=[part]))]
    assert decode(asked, np.array([0.2, 0.3, 0.5])).tolist() == cells.tolist()


# Twins.

NO_NOISE = """
from compliance.answers import groups
honest = groups.noise_rate
groups.noise_rate = lambda *asked: honest(float("inf"))
"""
SPENDS_LESS = """
from compliance.answers.groups import GroupCase
GroupCase.spent = property(lambda grouped: 0.5)
"""
GUESSES_OTHERWISE = submitting(
    "SubmitGroups",
    "request.guess.data = bytes(len(request.guess.data))",
    "developer.groups.play",
    "GroupGameService",
)


@pytest.mark.check
def test_parties_that_cheat_are_named(tmp_path: Path, twins: Twins) -> None:
    twins({"compliance": NO_NOISE + SPENDS_LESS, "developer": GUESSES_OTHERWISE})
    texts = reported(verify(played(tmp_path, ONE)))
    for text in (
        "compliance releases counts-1",
        "compliance reports: epsilon_spent is 0.5, recomputed 1.0",
        "developer reports: guess",
    ):
        assert any(one.startswith(f"deal-1: {text}") for one in texts), texts


@pytest.mark.check
def test_a_line_that_says_otherwise_is_found(tmp_path: Path) -> None:
    exact = ONE.replace("epsilon = 1.0\nmodels = 1", 'strategy = "halves"\nepsilon = "inf"\nmodels = 20\nbatches = 6')
    folder = played(tmp_path, exact)
    assert not verify(folder).findings
    path = folder / "trials.jsonl"
    path.write_text(path.read_text().replace('"recovered": 60', '"recovered": 59', 1))
    assert {finding.check for finding in verify(folder).findings} == {"file", "reported"}


UNPLAYABLE: tuple[tuple[dict[str, Any], str], ...] = (
    ({"epsilon": 0}, 'groups.epsilon: must be a positive number or "inf"'),
    ({"epsilon": 0.001, "models": 6, "batches": 3}, "groups.epsilon: must be at least 0.0018 for so many models"),
    ({"shares": [0.5, 0.4]}, "groups.shares: must be of 2 to 256 groups, and sum up to 1"),
    ({"columns": ["race"]}, "groups.columns: only a table has them"),
    ({"source": "adult"}, "groups.shares: only of synthetic people"),
    ({"source": "adult", "shares": []}, "groups.columns: is missing"),
    ({"strategy": "guess"}, "groups.strategy: must be one of blocks, halves, searched"),
    ({"people": 30, "models": 5}, "groups.models: 5 make more blocks than there are people"),
)


def test_what_cannot_be_played_is_refused_in_one_line() -> None:
    for asked, words in UNPLAYABLE:
        values = {"shares": [0.5, 0.5], "epsilon": 1.0, **asked}
        with pytest.raises(ScenarioError, match=words) as refused:
            lay_out({"scenario": {"name": "bad", "game": "groups"}, "groups": values}, "bad.toml")
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"source": "adult", "columns": ["race"], "people": 20_000}, ""),
        (
            {"source": "german", "columns": ["sex"], "people": 2_000},
            "groups.people: 2000 people wanted, german has 1000",
        ),
        ({"source": "adult", "columns": ["age", "race"], "people": 100}, "groups.columns: their values make"),
        ({"shares": [1 - 1e-9, 1e-9], "people": 100}, "groups.people: all 100 are of one group"),
    ],
)
def test_people_that_cannot_be_dealt_are_one_line(asked: dict[str, Any], words: str) -> None:
    (cell,) = lay_out({"scenario": {"name": "few", "game": "groups"}, "groups": {"epsilon": 1.0, **asked}}, "few").cells
    if not words:
        assert len(deal(cell, 0, "deal").cells) == asked["people"]
        return
    with pytest.raises(DealError, match=words):
        deal(cell, 0, "deal")
