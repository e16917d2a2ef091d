"""The washing game through real processes: who gets away, twins that cheat, and what cannot be played."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from developer.reveal.logistic_models import fit
from developer.wash.shown_decisions import flips_to_pass, order
from fairwall.game.v1 import wash_service_pb2 as wire
from fairwall.laws.studies.cheat_detection import detection, least
from fairwall.rpc.arrays import to_message
from fairwall.rpc.errors import Refusal
from fairwall.wire.commitment import commit
from fairwall.wire.v1 import error_pb2
from sim.games import lay_out, read, table
from sim.games.cards import DealError
from sim.games.wash.deal import deal
from sim.games.wash.trial import WashDealer, _WashTrial
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
game = "wash"
seed = 4
trials = 1
[data]
source = "compas"
protected = "race"
test_size = 100
training = 300
sample = 300
[compliance]
mechanism = "exact"
[wash]
strategy = "group-thresholds"
knows = "given"
checks = 40
"""
SWEPT = (
    TOY
    + """
[[sweep]]
"wash.strategy" = ["honest", "majority"]
"wash.knows" = ["features"]
"wash.committed" = [true]
"wash.evades" = [false]
"wash.wrong" = [0, 0.1]
[[sweep]]
"wash.strategy" = ["flips"]
"wash.knows" = ["answers"]
"wash.committed" = [true, false]
"wash.evades" = [false, true]
"wash.wrong" = [0]
"""
)


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("wash"), SWEPT)


def cells_of(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "result.json").read_text())["summary"]
    return found


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "trials.jsonl").read_text().splitlines()]


@pytest.mark.check
def test_who_is_bound_is_caught_and_who_is_not_evades(toy: Path) -> None:
    lines = {(one["strategy"], one["committed"], one["evades"], one["wrong"]): one for one in lines_of(toy)}
    assert len(lines) == 8
    for wrong in (0, 0.1):
        honest, majority = (lines[name, True, False, wrong] for name in ("honest", "majority"))
        assert (honest["flips"], honest["accused"], honest["won"]) == (0, False, False)
        assert (majority["passed"], majority["shown_gap"]) == (True, 0)
        assert majority["accused"] or wrong, "few report wrongly, and so may few contradictions mean nothing"
        assert (honest["contradictions"] > 0) == (wrong > 0)
    free, bound = (lines["flips", committed, True, 0] for committed in (False, True))
    assert free["flips"] > 0
    assert (free["contradictions"], free["accused"]) == (0, False)
    assert bound == {
        **lines["flips", True, False, 0],
        **{key: bound[key] for key in ("seconds", "evades", "wash.evades", "trial") if key in bound},
    }
    for line in lines.values():
        assert line["learned"] == (100 if line["strategy"] == "flips" else pytest.approx(line["learned"]))
        assert not line["broken"]
        assert line["accused"] == (line["contradictions"] > 0) or line["wrong"]


@pytest.mark.check
def test_it_verifies_and_replays_bit_for_bit(toy: Path) -> None:
    found = verify(toy)
    assert not found.findings
    assert not [note for note in found.notes if note.startswith("not checked")]
    again = playing.again(open_run(toy))
    assert (again.difference, again.trials) == (None, 8)
    alone = playing.again(open_run(played(toy.parent, TOY)))
    assert (alone.difference, alone.trials) == (None, 1)


def test_the_report_shows_who_gets_away(toy: Path) -> None:
    page = (toy / "report.html").read_text()
    for words in ("Who passes, who is accused, and who gets away", "An honest developer was accused in no trial."):
        assert words in page
    console = Console(width=80, file=io.StringIO())
    with console.capture() as printed:
        console.print(terminal(read(str(toy / "scenario.toml")), [], cells_of(toy)))
    assert max(map(len, printed.get().splitlines())) <= 80


# Twins.

CHANGES_ITS_MIND = """
import developer.wash.play as player
honest = player.commit
player.commit = lambda decisions, salt: honest(1 - decisions, salt)
"""
SHOWS_OTHERWISE = submitting(
    "SubmitWash", "request.shown.data = request.deployed.data", "developer.wash.play", "WashService"
)
LOOKS_AWAY = submitting("SubmitVerdict", "request.accused = False", "compliance.games.wash", "WashService")
MISREPORTS = submitting(
    "SubmitSighting", "request.seen.data = bytes(len(request.seen.data))", "adversary.play", "WashService"
)


@pytest.mark.check
def test_who_shows_other_than_it_committed_to_is_accused(tmp_path: Path, twins: Twins) -> None:
    twins({"developer": CHANGES_ITS_MIND})
    honest = TOY.replace('"group-thresholds"\nknows = "given"', '"honest"\ncommitted = true')
    (line,) = lines_of(played(tmp_path, honest))
    assert (line["flips"], line["contradictions"], line["broken"], line["accused"]) == (0, 0, True, True)


@pytest.mark.check
def test_parties_that_cheat_are_named(tmp_path: Path, twins: Twins) -> None:
    twins({"compliance": LOOKS_AWAY, "developer": SHOWS_OTHERWISE, "adversary": MISREPORTS})
    texts = reported(verify(played(tmp_path, TOY)))
    for text in ("developer reports: shown", "compliance concludes: accused", "adversary reports: seen"):
        assert any(one.startswith(f"deal-1: {text}") for one in texts), texts


# The referee.


Lay = Callable[..., tuple[WashDealer, _WashTrial]]


@pytest.fixture
def dealer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Lay]:
    """Lays a deal on a dealer's table, which compliance serves; it is taken off when the test is over."""
    monkeypatch.setattr(table, "_WAIT_SECONDS", 0.05)
    at_play = list[tuple[table.GameTable, threading.Thread]]()

    def lay(**asked: Any) -> tuple[WashDealer, _WashTrial]:
        values = {
            "scenario": {"name": "one", "game": "wash"},
            "data": {"source": "german", "protected": "sex", "test_size": 40, "training": 300, "sample": 300},
            "compliance": {"mechanism": "exact"},
            "wash": {"checks": 10, "committed": True, **asked},
        }
        laid = table.GameTable()
        trial = _WashTrial(deal(lay_out(values, "one").cells[0], 0, "deal"), served=True)

        def play() -> None:
            with suppress(table.TrialFailed):
                laid.play(trial, 600.0)

        at_play.append((laid, threading.Thread(target=play)))
        at_play[-1][1].start()
        while laid._trial is None:
            laid.wait(lambda: laid._trial is not None)
        return WashDealer(laid), trial

    yield lay
    for laid, thread in at_play:
        laid.abort("the test is over")
        thread.join()


def refused(call: Callable[..., Any], request: Any) -> int:
    with pytest.raises(Refusal) as found:
        call(request, None)
    return found.value.reason


def test_rows_are_drawn_for_who_has_committed_and_a_commitment_stays(dealer: Lay) -> None:
    wash, trial = dealer()
    decisions, salt = np.ones(40, np.uint8), bytes(32)
    own, other = (commit(each, salt) for each in (decisions, 1 - decisions))
    seen = wire.SubmitSightingRequest(deal_id="deal", seen=to_message(np.ones(10, np.uint8)))
    (nothing,) = wash.TakeCheckDeal(wire.TakeCheckDealRequest(), None)
    assert nothing.WhichOneof("part") == "turn"
    assert refused(wash.SubmitSighting, seen) == error_pb2.REASON_OUT_OF_TURN
    for wrong in (b"", own[:-1], own + b"0"):
        request = wire.SubmitCommitmentRequest(deal_id="deal", commitment=wrong)
        assert refused(wash.SubmitCommitment, request) == error_pb2.REASON_SUBMISSION_INVALID
    wash.SubmitCommitment(wire.SubmitCommitmentRequest(deal_id="deal", commitment=own), None)
    wash.SubmitCommitment(wire.SubmitCommitmentRequest(deal_id="deal", commitment=own), None)
    changed = wire.SubmitCommitmentRequest(deal_id="deal", commitment=other)
    assert refused(wash.SubmitCommitment, changed) == error_pb2.REASON_OUT_OF_TURN
    assert trial.commitment == own
    dealt, *_ = wash.TakeCheckDeal(wire.TakeCheckDealRequest(), None)
    assert list(dealt.deal.features.shape) == [10, trial.deal.features.shape[1]]


def test_nobody_acts_before_its_turn_or_submits_what_does_not_fit(dealer: Lay) -> None:
    wash, trial = dealer(committed=False)
    array, belief = to_message(np.ones(40, np.uint8)), to_message(np.full(40, 0.5))
    request = wire.SubmitWashRequest(deal_id="deal", shown=array, deployed=array, belief=belief)
    wash.SubmitCommitment(wire.SubmitCommitmentRequest(deal_id="deal"), None)
    assert refused(wash.SubmitWash, request) == error_pb2.REASON_OUT_OF_TURN
    (nothing,) = wash.TakeAuditDeal(wire.TakeAuditDealRequest(), None)
    assert nothing.WhichOneof("part") == "turn"
    for bad in (np.ones(9, np.uint8), np.full(10, 2, np.uint8)):
        message = wire.SubmitSightingRequest(deal_id="deal", seen=to_message(bad))
        assert refused(wash.SubmitSighting, message) == error_pb2.REASON_SUBMISSION_INVALID
    seen = wire.SubmitSightingRequest(deal_id="deal", seen=to_message(np.ones(10, np.uint8)))
    wash.SubmitSighting(seen, None)
    seen.seen.CopyFrom(to_message(np.zeros(10, np.uint8)))
    assert refused(wash.SubmitSighting, seen) == error_pb2.REASON_OUT_OF_TURN
    verdict = wire.SubmitVerdictRequest(deal_id="deal", contradictions=11)
    assert refused(wash.SubmitVerdict, verdict) == error_pb2.REASON_OUT_OF_TURN
    for bad in (np.full(40, 1.5), np.full(39, 0.5), np.full(40, np.nan)):
        request.belief.CopyFrom(to_message(bad))
        assert refused(wash.SubmitWash, request) == error_pb2.REASON_SUBMISSION_INVALID
    request.belief.CopyFrom(belief)
    wash.SubmitWash(request, None)
    assert refused(wash.SubmitVerdict, verdict) == error_pb2.REASON_SUBMISSION_INVALID
    assert trial.missing == "compliance"


# Figures of the page.


@pytest.mark.check
def test_the_published_two_sample_check_is_not_reproduced() -> None:
    """70% at 127 of 750 is printed of Adult, sex; flips that end our model's gap are found in 55%, as the page says."""
    asked = {"source": "adult", "protected": "sex", "test_size": 750}
    values = {"scenario": {"name": "two", "game": "wash"}, "data": asked, "compliance": {"mechanism": "exact"}}
    (cell,) = lay_out(values, "two").cells
    known = deal(cell, 0, "deal").known
    model = fit(known.training_features, known.training_labels)
    found, flips = [], []
    for trial in range(40):
        dealt = deal(cell, trial, "deal")
        deployed, truly = (model.scores(dealt.features) >= 0.5).astype(np.uint8), dealt.disadvantaged
        one = flips_to_pass(deployed, order(deployed, truly), truly, 0.501 / truly.sum())
        assert one is not None
        flips.append(one)
        found.append(detection(750, one, 127, 0.058, least(127, 0.058, 0.05)))
    assert np.mean(found) == pytest.approx(0.55, abs=0.005)
    assert np.median(flips) == 37.5
    assert detection(750, 46, 127, 0.058, least(127, 0.058, 0.05)) == pytest.approx(0.69, abs=0.005)


@pytest.mark.slow(seconds=150)
def test_the_scenario_says_what_the_page_does(tmp_path: Path) -> None:
    """40 deals: few flips after exact answers, many from features alone, as many under counts at epsilon 1."""
    sweep = read("wash")
    run = runner.play(sweep, RunFolder.create(tmp_path / "runs", "wash"), lambda _: None).folder
    cells = cells_of(run)
    median = {
        (one["knows"], one["epsilon"]): one["flips_to_pass"]
        for one in cells
        if one["strategy"] == "flips" and not one["checks"]
    }
    assert median["answers", "inf"] <= 12
    assert median["given", "inf"] <= 12
    assert median["features", "inf"] >= 25
    assert median["answers", 1] >= 0.8 * median["features", 1]
    for one in cells:
        if one["strategy"] == "honest":
            assert (one["accused"], one["won"]) == (0, 0)
        elif one["evades"] and not one["committed"]:
            assert (one["accused"], one["passed"]) == (0, 100)
        elif one["checks"]:
            # 40 trials: three standard errors, of a mixture over deals, whose rows are checked in other cells as well.
            assert one["accused"] == pytest.approx(one["detection"], abs=24)


# What cannot be played.


UNPLAYABLE: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("wash", {"checks": 101}, "wash.checks: 101 of 100 audited rows"),
    ("wash", {"checks": 0, "evades": True}, "wash.evades: no customer asks; set wash.checks"),
    ("wash", {"checks": 0, "wrong": 0.1}, "wash.wrong: no customer reports anything"),
    ("wash", {"alarm": 0}, "wash.alarm: "),
    ("wash", {"strategy": "flip"}, "wash.strategy: must be one of honest, majority, swap, flips"),
    ("wash", {"strategy": "majority", "knows": "given"}, "wash.knows: strategy majority looks at nobody's group"),
    ("compliance", {"metric": "eo"}, "compliance.metric: the washing game audits sp, not eo"),
    ("compliance", {"mechanism": "pass-fail"}, "compliance.mechanism: pass-fail has a threshold of its own"),
    ("compliance", {"epsilon": 1.0}, "compliance.epsilon: mechanism exact adds no noise"),
    ("data", {"source": "synthetic"}, "data.source: synthetic people have no features"),
    ("data", {"test_size": 9}, "data.test_size: "),
)


def test_what_cannot_be_played_is_refused_in_one_line() -> None:
    for section, asked, words in UNPLAYABLE:
        values: dict[str, dict[str, Any]] = {
            "data": {"source": "german", "protected": "sex", "test_size": 100},
            "compliance": {"mechanism": "exact"},
            "wash": {"checks": 40},
        }
        values[section] |= asked
        with pytest.raises(ScenarioError, match=words) as found:
            lay_out({"scenario": {"name": "bad", "game": "wash"}, **values}, "bad.toml")
        assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"test_size": 401}, "data.test_size: 401 people wanted, 400 of german are left"),
        ({"training": 700}, "data.training: 700 rows, and data.sample's 300, leave none of 1000 to audit"),
    ],
)
def test_people_that_cannot_be_dealt_are_one_line(asked: dict[str, Any], words: str) -> None:
    data = {"source": "german", "protected": "sex", "test_size": 100, "training": 300, "sample": 300, **asked}
    values = {"scenario": {"name": "few", "game": "wash"}, "data": data, "compliance": {"mechanism": "exact"}}
    with pytest.raises(DealError, match=words):
        deal(lay_out(values, "few").cells[0], 0, "deal")
