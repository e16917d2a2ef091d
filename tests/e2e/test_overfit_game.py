"""The overfit game through real processes: what patches do, twins that cheat, and what cannot be played or sent."""

from __future__ import annotations

import io
import json
import math
import re
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from compliance.games.overfit import rounds_of
from fairwall.errors import RunFailed
from fairwall.game.v1 import overfit_service_pb2 as wire
from fairwall.laws.privacy.amounts import part_of, total
from fairwall.rpc.arrays import to_message
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2
from sim.games import GAMES, lay_out, read
from sim.games.cards import DealError
from sim.games.overfit.deal import OverfitDeal, deal
from sim.games.overfit.page import findings
from sim.games.overfit.trial import OverfitDealer, OverfitOutcome, Patched, Patches, _OverfitTrial, gap
from sim.games.referee import _dealt
from sim.games.submissions import AuditReport
from sim.games.table import GameTable
from sim.replay import playing
from sim.replay.captions import sayings
from sim.replay.recorded import open_run
from sim.report.cells import Swept
from sim.scenarios.sweep import ScenarioError
from sim.transcripts.captions import shared
from sim.transcripts.files import paths
from sim.transcripts.files import read as read_transcript
from sim.transcripts.messages import PlayedSession
from sim.verify.check import verify
from tests.e2e.test_verify_reports import Twins, played, reported, reporting, submitting, twins
from tests.support.terminal_output import terminal

__all__ = ["twins"]

TOY = """
[scenario]
name = "toy"
game = "overfit"
trials = 2
seed = 4
[data]
source = "german"
test_size = 60
[compliance]
mechanism = "exact"
epsilon = "inf"
[overfit]
flips = 5
public_sample = 200
population = 300
models = 60
[[sweep]]
"overfit.rows" = ["hidden"]
"overfit.attack" = ["answers"]
"compliance.mechanism" = ["exact"]
"compliance.epsilon" = ["inf"]
[[sweep]]
"overfit.rows" = ["open", "fresh"]
"overfit.attack" = ["both"]
"compliance.mechanism" = ["counts"]
"compliance.epsilon" = [1]
[[sweep]]
"overfit.rows" = ["open"]
"overfit.attack" = ["features"]
"compliance.mechanism" = ["counts"]
"compliance.epsilon" = [1]
[[sweep]]
"overfit.rows" = ["committed"]
"overfit.attack" = ["majority"]
"compliance.mechanism" = ["exact"]
"compliance.epsilon" = ["inf"]
"""
HEAD = TOY[: TOY.index("[[sweep]]")].replace("trials = 2", "trials = 1")
ROUNDS = (
    HEAD.replace('"exact"', '"counts"').replace('"inf"', "1.0").replace("[overfit]", "[overfit]\nrounds = 3")
    + '[sweep]\n"overfit.rows" = ["open", "fresh"]\n'
)
COMMITTED = HEAD.replace("[overfit]", '[overfit]\nrows = "committed"\nattack = "majority"')


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("overfit"), TOY)


@pytest.fixture(scope="module")
def rounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("rounds"), ROUNDS)


def cells_of(folder: Path) -> dict[tuple[str, str], dict[str, Any]]:
    cells = json.loads((folder / "result.json").read_text())["summary"]
    return {(cell["rows"], cell["attack"]): cell for cell in cells}


def dealt(scenario: str = HEAD, **asked: Any) -> OverfitDeal:
    values = tomllib.loads(scenario)
    values["overfit"] |= asked
    return deal(lay_out(values, "one.toml").cells[0], 0, "deal-1")


def patched(one: OverfitDeal, rows: tuple[int, ...]) -> Patched:
    return Patched(one, OverfitOutcome(Patches(rows, 0), b"", AuditReport((), 0.0)))


@pytest.mark.check
def test_patches_move_the_audited_gap_and_others_gaps_little(toy: Path) -> None:
    cells, lines = cells_of(toy), [json.loads(line) for line in (toy / "trials.jsonl").read_text().splitlines()]
    assert len(lines) == 10
    for line in lines:
        assert line["overfit"] == pytest.approx(line["population"] - line["gap"])
        assert line["overfit"] == pytest.approx(line["from_x"] + line["from_answers"])
    # Five flips in the group of 18 to 20: each moves the gap by one in so many, or more in the smaller.
    assert cells["hidden", "answers"]["fall"] > 5 / 25
    assert abs(cells["hidden", "answers"]["population_fall"]) < 0.02
    assert cells["committed", "majority"]["fall"] > 0.05
    assert cells["fresh", "both"]["fall"] == 0
    assert cells["open", "features"]["answers"] == cells["open", "features"]["nats"] == 0
    for cell in cells.values():
        assert cell["bound"] == pytest.approx(cell["sigma"] * math.sqrt(2 * cell["nats"]))
    assert 0 < cells["open", "both"]["nats"] < cells["hidden", "answers"]["nats"]


@pytest.mark.check
def test_it_verifies_and_replays_bit_for_bit(toy: Path) -> None:
    found = verify(toy)
    assert not found.findings
    assert not [note for note in found.notes if note.startswith("not checked")]
    again = playing.again(open_run(toy))
    assert (again.difference, again.trials) == (None, 10)


@pytest.mark.check
def test_in_each_round_an_equal_part_of_epsilon_is_spent(rounds: Path) -> None:
    session, told = PlayedSession({path.parent.name: read_transcript(path) for path in paths(rounds)}), {}
    for deal_id in ("deal-1", "deal-2"):
        trial = session.trial(deal_id)
        cases = {deal_id: trial.batches, **trial.others}
        told[deal_id] = [list(batches) for batches in cases.values()]
        spent = [batch.answer.epsilon_charged for batches in cases.values() for batch in batches.values()]
        assert sum(spent) == pytest.approx(1.0, abs=1e-12)
        for number in range(3):  # two batches each: how large the groups are, and models
            assert total(spent[2 * number :][:2]) == part_of(1.0, 3)
    names = ["size-1", "metric-2", "size-3", "metric-4", "size-5", "metric-6"]
    assert told == {"deal-1": [names], "deal-2": [names[:2], names[2:4], names[4:]]}
    stays, fresh = (json.loads(line) for line in (rounds / "trials.jsonl").read_text().splitlines())
    for line in (stays, fresh):
        assert (line["rounds"], line["epsilon_spent"]) == (3, total([part_of(1.0, 3)] * 3))
    assert fresh["nats"] == 0 < stays["nats"]


@pytest.mark.check
def test_rounds_verify_and_replay_bit_for_bit(rounds: Path) -> None:
    found = verify(rounds)
    assert not found.findings
    assert not [note for note in found.notes if note.startswith("not checked")]
    again = playing.again(open_run(rounds))
    assert (again.difference, again.trials) == (None, 2)
    captions = {**shared(), **GAMES["overfit"].captions()}
    told = [saying.text for scripts in open_run(rounds).sessions for saying in sayings(scripts, captions)]
    assert "deal-2: you see X; turn 5 decisions at most in 3 rounds, by attack both, epsilon 1" in told
    assert any(text.startswith("deal-2: 180 people, ") for text in told)


def test_fresh_rows_of_each_round_are_others_and_each_has_a_ledger_of_its_own() -> None:
    one = dealt(rows="fresh", rounds=3)
    assert one.asked.shape == (3, 60)
    assert len({*one.asked.ravel().tolist(), *one.audited.tolist(), *one.population.tolist()}) == 500, "the whole pool"
    dealing, arrays = _dealt(one, one.compliance)
    made = list(rounds_of(dealing, arrays))
    assert [own.deal_id for own, _ in made] == ["deal-1", "deal-1/round-2", "deal-1/round-3"]
    for (_, cards), rows in zip(made, one.asked, strict=True):
        assert (cards["protected"] == one.pool.protected[rows]).all()
    dealing.audits.epsilon = 10 / 6
    dealing.seed = bytes(32)
    made = list(rounds_of(dealing, arrays))
    assert {own.audits.epsilon for own, _ in made} == {part_of(10 / 6, 3)}
    assert len({own.seed for own, _ in made}) == 3
    stays = dealt(rounds=3)
    assert (stays.asked == stays.audited).all()


def test_the_report_says_where_overfit_comes_from(toy: Path) -> None:
    page = (toy / "report.html").read_text()
    for words in ("Where the overfit comes from", "σ√(2I)", "turned up to 5 of its decisions", "Of X, of answers"):
        assert words in page
    console = Console(width=80, file=io.StringIO())
    with console.capture() as printed:
        console.print(terminal(read(str(toy / "scenario.toml")), [], list(cells_of(toy).values())))
    assert max(map(len, printed.get().splitlines())) <= 80
    assert "σ√(2I)" in printed.get()


def test_the_page_has_all_keys() -> None:
    page = (Path(__file__).parents[2] / "docs" / "overfit.md").read_text()
    (block,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    (cell,) = lay_out({"scenario": {"name": "page", "game": "overfit"}, **tomllib.loads(block)}, "docs").cells
    assert list(tomllib.loads(block)["overfit"]) == list(type(cell.scenario.overfit).model_fields)


def test_what_epsilon_does_not_protect_against_is_named_and_what_must_not_be() -> None:
    cell = {"trials": 100, "won": 1, "fall": 0.1, "population_fall": 0.0, "overfit": 0.1, "overfit_sd": 0.05}
    by_x = {
        **cell,
        "from_x": 0.09,
        "from_x_sd": 0.01,
        "from_answers": 0.01,
        "from_answers_sd": 0.05,
        "bound": 0.0,
        "nats": 0.0,
    }
    by_answers = {**by_x, "from_x": 0.01, "from_answers": 0.09, "bound": 0.2, "nats": 5.0}
    broken = {**by_answers, "bound": 0.05}
    told = [list(findings(Swept(()), [one]))[1:] for one in (by_x, by_answers, broken)]
    assert [len(each) for each in told] == [1, 1, 1]
    assert "epsilon does not protect against this" in told[0][0]
    assert "one noise serves both purposes" in told[1][0]
    assert "something is broken" in told[2][0]


def test_a_patch_turns_everybody_of_the_same_x_and_nobody_else() -> None:
    one = dealt()
    # As if every three rows of the pool had the same X.
    one = replace(one, pool=replace(one.pool, alike=np.arange(len(one.pool.labels)) // 3))
    model, everybody = patched(one, (3, 0)), np.arange(len(one.pool.labels))
    for count in range(3):
        turned = np.flatnonzero(model.decisions(everybody, count) != one.pool.decisions)
        alike = [row for row in everybody if row // 3 in {each // 3 for each in one.audited[[3, 0][:count]]}]
        assert turned.tolist() == alike


def test_a_majority_turns_at_most_as_many_audited_rows_as_may_be_patched() -> None:
    one = dealt(COMMITTED)
    favours = np.random.default_rng(1).integers(0, 2, 60).astype(np.uint8)
    model = Patched(one, OverfitOutcome(Patches((), 5, favours), bytes(32), AuditReport((), 0.0)))
    own = one.pool.decisions[one.audited]
    for count in (0, 1, 5, 40, 60):
        turned = model.decisions(one.audited, count) != own
        assert turned.sum() <= count
        assert (own[turned] == 0).all()
    assert (model.decisions(one.audited, 60) == 1).all()
    assert 0 < (model.decisions(one.population, 5) != one.pool.decisions[one.population]).mean() < 0.3


def test_audited_rows_and_the_population_are_apart_and_fresh_rows_are_others() -> None:
    for rows, apart in (("open", False), ("fresh", True)):
        one = dealt(rows=rows)
        assert len({*one.asked.tolist()} & {*one.audited.tolist()}) == (0 if apart else 60)
        assert not {*one.population.tolist()} & {*one.asked.tolist(), *one.audited.tolist()}
        assert -1 <= gap(one.pool.decisions[one.audited], one.pool.protected[one.audited]) <= 1


# What the referee refuses.


def laid(scenario: str) -> tuple[OverfitDealer, _OverfitTrial]:
    table = GameTable()
    trial = _OverfitTrial(dealt(scenario))
    table._trial, table._closed = trial, True  # nobody waits
    return OverfitDealer(table), trial


def refused(call: Callable[..., Any], request: Any) -> int:
    with pytest.raises(Refusal) as found:
        call(request, None)
    return found.value.reason


@pytest.mark.parametrize(
    ("patches", "enough"), [([0] * 2, 1), ([60], 1), ([0, 1, 2, 3, 4, 5], 1), ([0, 1], 3)], ids=str
)
def test_patches_that_cannot_be_are_refused(patches: list[int], enough: int) -> None:
    dealer, trial = laid(HEAD)
    request = wire.SubmitPatchesRequest(deal_id="deal-1", patches=patches, enough=enough)
    assert refused(dealer.SubmitPatches, request) == error_pb2.REASON_OUT_OF_TURN
    trial.served = True
    assert refused(dealer.SubmitPatches, request) == error_pb2.REASON_SUBMISSION_INVALID
    assert trial.submitted is None
    dealer.SubmitPatches(wire.SubmitPatchesRequest(deal_id="deal-1", patches=[59, 0], enough=2), None)  # type: ignore[arg-type]
    assert trial.submitted is not None
    assert (trial.submitted.rows, trial.submitted.enough) == ((59, 0), 2)


def test_rows_are_numbered_over_all_rounds() -> None:
    dealer, trial = laid(HEAD.replace("[overfit]", '[overfit]\nrows = "fresh"\nrounds = 3'))
    trial.served = True
    request = wire.SubmitPatchesRequest(deal_id="deal-1", patches=[180], enough=1)
    assert refused(dealer.SubmitPatches, request) == error_pb2.REASON_SUBMISSION_INVALID
    dealer.SubmitPatches(wire.SubmitPatchesRequest(deal_id="deal-1", patches=[179], enough=1), None)  # type: ignore[arg-type]
    assert trial.submitted is not None
    model, row = patched(trial.deal, trial.submitted.rows), trial.deal.asked[2, 59]
    assert model.decisions(np.array([row]), 1) == 1 - trial.deal.pool.decisions[row]


def test_a_commitment_of_another_length_is_refused() -> None:
    dealer, trial = laid(COMMITTED)
    for length in (0, 31, 33):
        request = wire.SubmitSealedRequest(deal_id="deal-1", key=bytes(length))
        assert refused(dealer.SubmitSealed, request) == error_pb2.REASON_SUBMISSION_INVALID
        assert not trial.dealable


def test_a_commitment_cannot_be_changed_and_only_committed_rows_have_one() -> None:
    dealer, trial = laid(COMMITTED)
    assert (trial.dealable, trial.opened) == (False, True)
    first = wire.SubmitSealedRequest(deal_id="deal-1", key=bytes([1] * 32))
    for _ in range(2):  # a retry is the same
        assert not dealer.SubmitSealed(first, None).served  # type: ignore[arg-type]
    assert (trial.dealable, trial.opened) == (True, False)
    assert trial.deal.compliance.sealed == first.key
    other = wire.SubmitSealedRequest(deal_id="deal-1", key=bytes(32))
    assert refused(dealer.SubmitSealed, other) == error_pb2.REASON_OUT_OF_TURN
    assert (trial.key, trial.deal.compliance.sealed) == (first.key, first.key)
    assert refused(laid(HEAD)[0].SubmitSealed, first) == error_pb2.REASON_OUT_OF_TURN


def test_votes_of_another_shape_are_refused() -> None:
    dealer, trial = laid(COMMITTED)
    trial.served = True
    for favours in (None, np.zeros(59, np.uint8), np.full(60, 2, np.uint8), np.zeros(60)):
        sent = None if favours is None else to_message(favours)
        request = wire.SubmitPatchesRequest(deal_id="deal-1", favours=sent)
        assert refused(dealer.SubmitPatches, request) == error_pb2.REASON_SUBMISSION_INVALID


# Twins.

SCORES_OTHERS = """
from dataclasses import replace
from compliance.games import overfit
honest = overfit.SealedGame
overfit.SealedGame = lambda key, features: honest(bytes(32), features)
"""
SPENDS_LESS = reporting("request.epsilon_spent = 0.5")
SEALS_AGAIN = """
from developer import overfit as player
from fairwall.game.v1 import overfit_service_pb2 as wire
honest = player.ask_models
def ask_models(audits, deal_id, *rest):
    answer = honest(audits, deal_id, *rest)
    player.REFEREE.SubmitSealed(wire.SubmitSealedRequest(deal_id=deal_id, key=bytes(32)), timeout=10)
    return answer
player.ask_models = ask_models
connect = player.OverfitServiceStub
def remembered(channel):
    player.REFEREE = connect(channel)
    return player.REFEREE
player.OverfitServiceStub = remembered
"""
SPENDS_ALL_IN_EACH_ROUND = """
from developer import overfit as player
player.part_of = lambda whole, parts: whole
"""
ALLOWS_ALL_IN_EACH_ROUND = """
from compliance.games import overfit
overfit.part_of = lambda whole, parts: whole
"""
ASKS_THE_SAME_PEOPLE = """
from compliance.games import overfit
honest = overfit.rounds_of
def rounds_of(deal, cards):
    made = list(honest(deal, cards))
    return [(own, made[0][1]) for own, _ in made]
overfit.rounds_of = rounds_of
"""
REPORTS_ANOTHER_ROUND = """
from compliance.games import overfit
honest = overfit._report
def report(cases):
    request = honest(cases)
    request.audits[-1].case_id = "deal-2/round-9"
    return request
overfit._report = report
"""
PATCHES_TOO_MANY = submitting("SubmitPatches", "request.patches[:] = range(6)", "developer.overfit", "OverfitService")


@pytest.mark.check
def test_a_compliance_that_scores_other_models_is_named(tmp_path: Path, twins: Twins) -> None:
    twins({"compliance": SCORES_OTHERS})
    texts = reported(verify(played(tmp_path, COMMITTED)))
    assert any(one.startswith("deal-1: compliance reports of metric-1: exact") for one in texts), texts


@pytest.mark.check
@pytest.mark.parametrize("lines", [SEALS_AGAIN, PATCHES_TOO_MANY], ids=["commits again", "patches too many"])
def test_a_developer_that_breaks_the_rules_ends_the_run(tmp_path: Path, twins: Twins, lines: str) -> None:
    twins({"developer": lines})
    with pytest.raises(RunFailed, match="developer ended with exit status 1"):
        played(tmp_path, COMMITTED if lines is SEALS_AGAIN else HEAD)


@pytest.mark.check
def test_a_developer_that_spends_epsilon_in_each_round_is_refused_by_the_ledger(tmp_path: Path, twins: Twins) -> None:
    twins({"developer": SPENDS_ALL_IN_EACH_ROUND})
    with pytest.raises(RunFailed, match="developer ended with exit status 1"):
        played(tmp_path, ROUNDS)


@pytest.mark.check
@pytest.mark.parametrize(
    ("lines", "text"),
    [
        (
            {"compliance": ALLOWS_ALL_IN_EACH_ROUND, "developer": SPENDS_ALL_IN_EACH_ROUND},
            "deal-1/round-2: compliance reports metric-4, which was more than was left of the budget of 0.333",
        ),
        ({"compliance": ASKS_THE_SAME_PEOPLE}, "deal-1/round-2: compliance reports of size-3: exact"),
        ({"compliance": REPORTS_ANOTHER_ROUND}, "deal-1: compliance reports of deal-2/round-9, which is no case"),
    ],
    ids=["epsilon in each round", "the same people", "another round"],
)
def test_a_compliance_that_confuses_fresh_rounds_is_named(
    tmp_path: Path, twins: Twins, lines: dict[str, str], text: str
) -> None:
    twins(lines)
    texts = reported(verify(played(tmp_path, ROUNDS.replace('"open", "fresh"', '"fresh"'))))
    assert any(one.startswith(text) for one in texts), texts


@pytest.mark.check
def test_a_line_that_says_otherwise_is_found(tmp_path: Path) -> None:
    folder = played(tmp_path, HEAD)
    assert not verify(folder).findings
    path = folder / "trials.jsonl"
    path.write_text(re.sub(r'"from_x": ', '"from_x": 1', path.read_text(), count=1))
    assert {finding.check for finding in verify(folder).findings} == {"file", "reported"}


# What cannot be played.


UNPLAYABLE: tuple[tuple[dict[str, dict[str, Any]], str], ...] = (
    ({"overfit": {"rows": "sealed"}}, "overfit.rows: must be one of open, hidden, fresh, committed"),
    ({"overfit": {"attack": "majority"}}, 'overfit.attack: "majority" is for committed rows'),
    ({"overfit": {"rows": "committed"}}, 'overfit.attack: "majority" is for committed rows'),
    ({"overfit": {"rows": "hidden"}}, "overfit.attack: of hidden rows X is not seen"),
    ({"overfit": {"flips": 0}}, "overfit.flips: "),
    ({"overfit": {"flips": 61}}, "overfit.flips: at most the 60 rows that are audited, not 61"),
    ({"overfit": {"rounds": 101}}, "overfit.rounds: "),
    (
        {"overfit": {"rows": "committed", "attack": "majority", "rounds": 4}},
        "overfit.rounds: who commits itself to all models at once has 1 round, not 4",
    ),
    ({"overfit": {"modles": 5}}, "overfit.modles: "),
    ({"data": {"test_size": 19}}, "data.test_size: "),
    ({"compliance": {"metric": "eo"}}, "compliance.metric: the game is about \"sp\", not 'eo'"),
    ({"compliance": {"epsilon": 1.0}}, "compliance.epsilon: mechanism exact adds no noise"),
)


def test_what_cannot_be_played_is_refused_in_one_line() -> None:
    for asked, words in UNPLAYABLE:
        values = tomllib.loads(HEAD)
        for section, keys in asked.items():
            values[section] |= keys
        with pytest.raises(ScenarioError, match=words) as refusal:
            lay_out(values, "bad.toml")
        assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"test_size": 500}, "data.test_size: 1 times 500 rows and a population wanted, german has 500"),
        ({"train_share": 0.001}, "data.train_share: everybody trained on in german has the same"),
    ],
)
def test_rows_that_cannot_be_dealt_are_one_line(asked: dict[str, Any], words: str) -> None:
    values = tomllib.loads(HEAD)
    values["data"] |= asked
    with pytest.raises(DealError, match=words):
        deal(lay_out(values, "few.toml").cells[0], 0, "deal-1")


# What the issue promises, on Adult.


def standing(cell: dict[str, Any], name: str) -> float:
    """The standard error of a mean."""
    return float(cell[f"{name}_sd"]) / math.sqrt(cell["trials"])


def bars(cells: dict[tuple[str, str, Any], dict[str, Any]], spare: float) -> None:
    """What must hold, give or take so many standard errors."""
    exact, noisy, by_x = (
        cells[key] for key in (("hidden", "answers", "inf"), ("hidden", "answers", 1), ("open", "features", 1))
    )
    assert exact["fall"] + spare * standing(exact, "fall") >= 0.17
    assert abs(exact["population_fall"]) <= 0.005
    assert noisy["fall"] - spare * standing(noisy, "fall") <= 0.02
    assert by_x["fall"] + spare * standing(by_x, "fall") >= 0.09


def by_epsilon(folder: Path) -> dict[tuple[str, str, Any], dict[str, Any]]:
    """The cells of one round, by what tells them apart."""
    cells = json.loads((folder / "result.json").read_text())["summary"]
    return {(cell["rows"], cell["attack"], cell["epsilon"]): cell for cell in cells if cell["rounds"] == 1}


@pytest.mark.check
def test_on_adult_noise_protects_from_answers_and_not_from_x(tmp_path: Path) -> None:
    """Eight trials; at four standard errors few runs on other seeds fail."""
    text = (Path(__file__).parents[2] / "sim" / "scenarios" / "overfit.toml").read_text()
    kept = text[: text.index('[[sweep]]\n"overfit.rows" = ["open", "fresh"]')]
    folder = played(tmp_path, kept.replace("[10, 1]", "[1]"), "scenario.trials=8", "overfit.population=4000")
    bars(by_epsilon(folder), 4)


@pytest.mark.slow(seconds=350)
def test_on_adult_the_issue_s_bars_are_met(tmp_path: Path) -> None:
    """Sixty deals each."""
    text = (Path(__file__).parents[2] / "sim" / "scenarios" / "overfit.toml").read_text()
    folder = played(tmp_path, text)
    cells = by_epsilon(folder)
    bars(cells, 0)
    for epsilon in ("inf", 1):
        fresh = cells["fresh", "both", epsilon]
        assert abs(fresh["overfit"]) <= 2 * standing(fresh, "overfit")
    page = (folder / "report.html").read_text()
    assert re.search(r"open, features[^<]*X alone made[^<]*epsilon does not protect against this", page)


@pytest.mark.slow(seconds=250)
def test_in_50_trials_no_cell_is_above_what_answers_can_make(tmp_path: Path) -> None:
    """Fourteen cells, half of which ask nothing about the rows or little: at 3 standard errors one run in 100 fails."""
    text = (Path(__file__).parents[2] / "sim" / "scenarios" / "overfit.toml").read_text()
    folder = played(tmp_path, text, "scenario.trials=50")
    cells = json.loads((folder / "result.json").read_text())["summary"]
    assert {cell["rounds"] for cell in cells} == {1, 4}
    for cell in cells:
        assert cell["from_answers"] - cell["bound"] <= 3 * standing(cell, "from_answers"), cell
