"""The game of the curator through real processes: what is found, what the developer never gets, and twins."""

from __future__ import annotations

import io
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from fairwall.errors import RunFailed
from fairwall.game.v1 import curator_service_pb2 as wire
from sim.games import lay_out, read
from sim.games.cards import DealError
from sim.games.curator import trial
from sim.games.curator.deal import deal
from sim.replay import playing
from sim.replay.recorded import open_run
from sim.verify.check import verify
from tests.e2e.test_verify_reports import Twins, played, reported, submitting, twins
from tests.support.command import fairwall
from tests.support.terminal_output import terminal

__all__ = ["twins"]

HEAD = """
[scenario]
name = "toy"
game = "curator"
seed = 4
"""
DATA = """
[data]
source = "adult"
people = 200
[compliance]
mechanism = "laplace"
epsilon = 8
[curator]
minimum_group = 5
requests = 8
"""
TOY = (
    HEAD
    + "trials = 2\n"
    + DATA
    + """
[[sweep]]
"curator.cheat" = ["none", "best"]
"curator.strength" = [5]
"curator.defence" = ["commitment"]
"curator.openings" = [3]
"curator.requests" = [8]
"curator.sample" = [0]
[[sweep]]
"curator.cheat" = ["best"]
"curator.strength" = [5]
"curator.defence" = ["none"]
"curator.openings" = [0]
"curator.requests" = [8]
"curator.sample" = [0]
[[sweep]]
"curator.cheat" = ["picked"]
"curator.strength" = [5]
"curator.defence" = ["none"]
"curator.openings" = [0]
"curator.requests" = [0]
"curator.sample" = [40]
"""
)
ONE = HEAD + "trials = 1\n" + DATA + 'defence = "commitment"\nopenings = 8\n'


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("curator"), TOY)


def cells_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "result.json").read_text())["summary"]
    return found


@pytest.mark.check
def test_a_cheat_wins_undefended_and_is_accused_under_a_commitment(toy: Path) -> None:
    honest, bound, free, picked = cells_of(toy)
    assert (honest["accused"], honest["shift"], honest["won"]) == (0, 0, 0)
    assert (bound["accused"], bound["won"], bound["missed"]) == (2, 0, 0)
    assert (free["accused"], free["won"]) == (0, 2)
    assert free["shift"] == bound["shift"] > 0.5, "the same requests, and the same noises to choose among"
    assert picked["gap_shown"] <= 0.05 < picked["gap_of_all"] or picked["gap_of_all"] <= 0.05


@pytest.mark.check
def test_it_verifies_and_replays_bit_for_bit(toy: Path) -> None:
    found = verify(toy)
    assert not found.findings
    assert not [note for note in found.notes if note.startswith("not checked")]
    again = playing.again(open_run(toy))
    assert (again.difference, again.trials) == (None, 8)


@pytest.mark.check
def test_a_trial_alone_is_what_it_is_in_sequence(toy: Path, tmp_path: Path) -> None:
    (tmp_path / "toy.toml").write_text(TOY)
    begun = fairwall("run", "toy.toml", "--json", "--trials", "1", cwd=tmp_path)
    assert begun.returncode == 0, begun.stderr
    lines = (Path(json.loads(begun.stdout)["run_dir"]) / "trials.jsonl").read_text().splitlines()
    whole = [json.loads(line) for line in (toy / "trials.jsonl").read_text().splitlines()]
    own = [{**json.loads(line), "seconds": 0} for line in lines]
    by_cell = [{**line, "seconds": 0} for line in whole if line["seed"] == own[0]["seed"]]
    assert [{**line, "trial": 0} for line in own] == [{**line, "trial": 0} for line in by_cell]


@pytest.mark.check
def test_the_report_says_that_statistics_do_not_suffice(toy: Path) -> None:
    page = (toy / "report.html").read_text()
    for words in ("Statistics alone do not suffice", "What a commitment binds", "What a cheat gains", "flag a sample"):
        assert words in page
    console = Console(width=80, file=io.StringIO())
    with console.capture() as printed:
        console.print(terminal(read(str(toy / "scenario.toml")), [], cells_of(toy)))
    assert max(map(len, printed.get().splitlines())) <= 80
    assert "accused" in printed.get()


def test_the_page_has_all_keys_in_their_order() -> None:
    page = (Path(__file__).parents[2] / "docs" / "curator.md").read_text()
    *_, block = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (cell,) = lay_out({"scenario": {"name": "page", "game": "curator"}, **tomllib.loads(block)}, "docs").cells
    assert list(tomllib.loads(block)["curator"]) == list(type(cell.scenario.curator).model_fields)


# Twins.

LEAKS = """
import numpy as np
import compliance.games.curator as games
from dataclasses import replace
honest = games.Curator.commitment
def leaking(curator):
    bits = np.packbits(curator.case.records.protected).tobytes()
    return replace(honest(curator), root=bits.ljust(32, bytes(1)))
games.Curator.commitment = leaking
"""
OPENS_OTHERWISE = submitting(
    "SubmitOpening",
    "request.attributes.data = bytes(1 - byte for byte in request.attributes.data)",
    "compliance.games.curator",
    "CuratorService",
)
ANSWERS_OTHERWISE = submitting(
    "SubmitAnswers",
    "request.answers.CopyFrom(to_message(from_message(request.answers) + 1))",
    "developer.curator",
    "CuratorService",
)


@pytest.mark.check
def test_attributes_in_a_root_are_found_in_what_the_developer_got(tmp_path: Path, twins: Twins) -> None:
    twins({"compliance": LEAKS})
    folder = played(tmp_path, ONE)
    assert "protected" in {finding.check for finding in verify(folder).findings}
    assert cells_of(folder)[0]["accused"] == 1, "it opens what it had not committed to"


@pytest.mark.check
def test_parties_that_say_otherwise_are_named(tmp_path: Path, twins: Twins) -> None:
    twins({"compliance": OPENS_OTHERWISE, "developer": ANSWERS_OTHERWISE})
    texts = reported(verify(played(tmp_path, ONE)))
    for text in ("compliance opens: attributes", "developer reports: answers"):
        assert any(one.startswith(f"deal-1: {text}") for one in texts), texts


@pytest.mark.check
def test_a_referee_that_tells_another_verdict_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = trial.CuratorDealer.SubmitAnswers

    def acquitting(self: Any, request: Any, context: Any) -> Any:
        response = honest(self, request, context)
        if response.verdict:
            response.verdict = wire.VERDICT_CLEAR
        return response

    with monkeypatch.context() as twin:
        twin.setattr(trial.CuratorDealer, "SubmitAnswers", acquitting)
        folder = played(tmp_path, f'{ONE}cheat = "best"\nstrength = 5\n')
    assert cells_of(folder)[0]["accused"] == 1, "its lines are right"
    (text,) = reported(verify(folder))
    assert text == "deal-1: the regulator tells: accused is False, recomputed True"


@pytest.mark.check
@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("request.commitment.rows -= 1", "SUBMISSION_INVALID"),
        ("request.commitment.rows_digest = bytes(32)", "SUBMISSION_INVALID"),
        ("request.commitment.root = b'short'", "SUBMISSION_INVALID"),
        ("honest(request, **options); request.commitment.root = bytes(32)", "OUT_OF_TURN"),
    ],
    ids=["another length", "other rows", "no digest", "it changes"],
)
def test_a_commitment_that_is_none_to_these_rows_or_changes_ends_the_run(
    tmp_path: Path, twins: Twins, change: str, reason: str
) -> None:
    twins({"compliance": submitting("ReleaseCommitment", change, "compliance.games.curator", "CuratorService")})
    with pytest.raises(RunFailed) as failed:
        played(tmp_path, ONE)
    assert reason in str(failed.value)
    assert "Traceback" not in str(failed.value)


def test_a_table_with_too_few_people_is_named() -> None:
    def dealt(**data: Any) -> None:
        values = {
            "data": {"source": "german", "protected": "sex", "advantaged": "male", **data},
            "curator": {"requests": 1},
        }
        (cell,) = lay_out(
            {
                "scenario": {"name": "few", "game": "curator"},
                "compliance": {"mechanism": "laplace", "epsilon": 1},
                **values,
            },
            "few",
        ).cells
        deal(cell, 0, "deal")

    with pytest.raises(DealError, match=r"data\.people: 2,000 people wanted"):
        dealt(people=2000)
    with pytest.raises(DealError, match=r"curator\.minimum_group: a group had fewer than 50 people"):
        dealt(people=60)
