"""The training game through real processes: models that are told of groups, canaries, twins that cheat, broken runs."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from fairwall.rpc.arrays import from_message, to_message
from sim.games import GAMES, read
from sim.games.game import Line
from sim.play import runner
from sim.replay import playing
from sim.replay.recorded import open_run
from sim.runs.folder import RunFolder, digests
from sim.runs.trials import summarise
from sim.transcripts.files import anchors, paths
from sim.transcripts.files import read as read_transcript
from sim.transcripts.findings import Findings
from sim.transcripts.messages import PlayedSession, TrialMessages
from sim.verify.check import verify
from tests.e2e.test_verify_reports import Twins, reported, submitting, twins
from tests.support.command import fairwall

__all__ = ["twins"]

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the extra for training")

TOY = """
[scenario]
name = "toy"
game = "training"
trials = 1
seed = 2
[data]
source = "german"
protected = "sex"
people = 300
[compliance]
mechanism = "gaussian"
epsilon = 2.0
delta = 1e-5
[training]
model = "lr"
epsilon = 8.0
canaries = 60
"""
MODELS = """
[[sweep]]
"training.model" = ["pflr*", "fair-lr"]
"training.canaries" = [60]
[[sweep]]
"training.model" = ["rates"]
"training.canaries" = [0]
"""
PFLR, FAIR, RATES = "deal-1", "deal-2", "deal-3"


def play(parent: Path, scenario: str, *settings: str) -> Path:
    """Play a scenario; the run's folder."""
    file = parent / "toy.toml"
    file.write_text(scenario)
    return runner.play(read(str(file), settings), RunFolder.create(parent / "runs", "toy"), lambda _: None).folder


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("training"), TOY + MODELS)


def lines_of(folder: Path) -> list[Line]:
    return [json.loads(text) for text in (folder / "trials.jsonl").read_text().splitlines()]


def timeless(lines: list[Line]) -> list[Line]:
    return [{**line, "seconds": 0} for line in lines]


def test_models_are_told_of_groups_and_guessed_about(toy: Path) -> None:
    private, fair, rates = lines_of(toy)
    assert (private["asked"], fair["asked"], rates["asked"]) == (1, 3, 1)
    assert all(1.9 < line["epsilon_spent"] <= 2.0 for line in (private, fair, rates))
    assert (private["promised"], private["promised_delta"], fair["promised"]) == (8.0, 1e-5, "inf")
    assert [step[0] for step in private["steps"]] == ["the groups' mean rows", "the perturbed minimum"]
    assert sum(step[1] for step in private["steps"]) == pytest.approx(8.0)
    for line in (private, fair):
        assert (line["canaries"], line["guessed"]) == (60, 40)
        assert -1 <= line["gap"] == pytest.approx(line["positives"][1] - line["positives"][0])
        assert 300 < line["people"] == sum(line["sizes"]) < 360
    # The models of two cells are trained on the same people.
    assert private["sizes"] == fair["sizes"]
    assert all(abs(error) < 0.5 for error in rates["noise_errors"])


def test_it_verifies(toy: Path) -> None:
    found = verify(toy)
    assert not found.findings
    page, scores = (note for note in found.notes if note.startswith("not checked"))
    assert page.startswith("not checked: report.html")
    assert scores.startswith("not checked: scores: the model is in no message")
    assert found.reports == 3 + 3 + 2 + 3  # compliance's, the developer's, the adversary's, and lines
    assert found.columns == 2  # the models' people, and the rates'


@pytest.mark.slow
def test_it_replays_bit_for_bit(toy: Path) -> None:
    again = playing.again(open_run(toy))
    assert (again.difference, again.trials) == (None, 3)


# Changed files.


def changed(toy: Path, tmp_path: Path, change: Callable[[list[Line]], object]) -> list[str]:
    """Change lines so that all digests hold; what is found."""
    folder = Path(shutil.copytree(toy, tmp_path / "run"))
    lines = lines_of(folder)
    change(lines)
    (folder / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = json.loads((folder / "result.json").read_text())
    summary = summarise(read(str(folder / "scenario.toml")), lines)
    result |= {"files": digests(folder), "transcripts": anchors(folder), "summary": summary}
    (folder / "result.json").write_text(json.dumps(result))
    return reported(verify(folder))


LINES: dict[str, tuple[int, object]] = {
    "accuracy": (0, 0.99),
    "gap": (1, 0.0),
    "promised": (0, 0.5),
    "epsilon_spent": (0, 0.1),
    "asked": (1, 0),
    "right": (1, 40),
    "noise_errors": (2, [0.0, 0.0]),
    "steps": (0, []),
}
QUICK = ("accuracy", "promised")


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("trial", "key", "value"),
    [
        pytest.param(trial, key, value, id=key, marks=() if key in QUICK else pytest.mark.slow)
        for key, (trial, value) in LINES.items()
    ],
)
def test_a_changed_line_is_named(toy: Path, tmp_path: Path, trial: int, key: str, value: object) -> None:
    texts = changed(toy, tmp_path, lambda lines: lines[trial].update({key: value}))
    assert any(f" (deal-{trial + 1}): {key}" in text for text in texts), texts


def contradictions(toy: Path, deal_id: str, change: Callable[[TrialMessages], object]) -> list[str]:
    """Change a trial's messages, as if they had been recorded so; what contradicts the rest of them."""
    session = PlayedSession({script.party: script for script in map(read_transcript, paths(toy))})
    trial, findings = session.trial(deal_id), Findings()
    change(trial)
    for compare in GAMES["training"].recompute(session):
        compare(findings, trial)
    return [text for _, text in findings.contradictions]


def submitted(method: str, change: Callable[[Any], object]) -> Callable[[TrialMessages], None]:
    return lambda trial: change(trial.submissions[method].request) and None


def told(change: Callable[[list[Any], list[Any]], object]) -> Callable[[TrialMessages], None]:
    """Change the requests and the answer of a trial's first sums."""

    def alter(trial: TrialMessages) -> None:
        one = trial.releases[0]
        requests, answers = one.requests, one.answers
        change(requests, answers)
        known: Any = SimpleNamespace(
            method=one.method, place=one.place, is_stored=True, requests=requests, answers=answers
        )
        trial.releases[0] = known

    return alter


def moved(message: Any, by: float) -> None:
    values = from_message(message).copy()
    values.flat[0] += by
    message.CopyFrom(to_message(values))


def flipped(message: Any) -> None:
    values = from_message(message).copy()
    values.flat[0] ^= 1
    message.CopyFrom(to_message(values))


def long_rows(requests: list[Any]) -> None:
    rows = np.frombuffer(requests[1].rows_chunk, np.float64).copy()
    rows[0] = 2.0
    requests[1].rows_chunk = rows.tobytes()


DOCTORED: dict[str, tuple[str, Callable[[TrialMessages], object], str]] = {
    "epsilon": (
        PFLR,
        submitted("SubmitModel", lambda r: setattr(r, "epsilon", 0.5)),
        "developer reports: epsilon is 0.5",
    ),
    "a promise": (
        FAIR,
        submitted("SubmitModel", lambda r: setattr(r, "epsilon", 1.0)),
        "developer reports: epsilon is 1",
    ),
    "asked": (
        FAIR,
        submitted("SubmitModel", lambda r: setattr(r, "asked", 1)),
        "developer reports: asked is 1, recomp",
    ),
    "a decision": (
        PFLR,
        submitted("SubmitModel", lambda r: flipped(r.decisions)),
        "developer reports: decisions[0] is",
    ),
    "a guess": (PFLR, submitted("SubmitCanaries", lambda r: moved(r.guesses, 1)), "adversary reports: guesses[0] is "),
    "what was spent": (
        RATES,
        submitted("SubmitAuditReport", lambda r: setattr(r, "epsilon_spent", 1.0)),
        "compliance reports: epsilon_spent is 1.0, recomputed ",
    ),
    "sums": (RATES, told(lambda _, answers: moved(answers[0].sums, 1e-3)), "compliance tells sums-1[0] is "),
    "a multiplier": (
        PFLR,
        told(lambda requests, _: setattr(requests[0].header, "multiplier", 50.0)),
        "compliance tells sums-1[0] is ",
    ),
    "long rows": (RATES, told(lambda requests, _: long_rows(requests)), "compliance tells sums-1, of rows that are"),
}


@pytest.mark.parametrize(("deal_id", "change", "text"), DOCTORED.values(), ids=DOCTORED)
def test_a_message_that_says_otherwise_is_named(
    toy: Path, deal_id: str, change: Callable[[TrialMessages], object], text: str
) -> None:
    assert contradictions(toy, deal_id, lambda _: None) == []
    texts = contradictions(toy, deal_id, change)
    assert any(one.startswith(f"{deal_id}: {text}") for one in texts), texts


# Parties that cheat.

EXACT_SUMS = """
from compliance.answers.statistics import Cohort
Cohort.summed = lambda cohort, request_id, rows, multiplier: cohort.exact(rows)
"""
SPENDS_LESS = """
from compliance.answers.statistics import Cohort
Cohort.spent = property(lambda cohort: 0.5)
"""
SENDS_GROUPS = """
from compliance.answers import statistics_service as service
from fairwall.rpc import arrays
receive = service.StatisticsService.SumByGroup
def answering(self, request_iterator, context):
    answer = receive(self, request_iterator, context)
    (cohort,) = self._cohorts.values()
    answer.sums.CopyFrom(arrays.to_message(cohort.protected.reshape(2, -1)))
    return answer
service.StatisticsService.SumByGroup = answering
"""
TWINS: dict[str, tuple[Mapping[str, str], str]] = {
    "compliance without noise": ({"compliance": EXACT_SUMS}, "compliance tells sums-1[0] is "),
    "compliance that spends otherwise": ({"compliance": SPENDS_LESS}, "compliance reports: epsilon_spent is 0.5"),
    **{
        f"a developer with another {name}": (
            {"developer": submitting("SubmitModel", change, "developer.training.play", "TrainingService")},
            f"developer reports: {name}",
        )
        for name, change in {
            "epsilon": "request.epsilon = 0.1",
            "asked": "request.asked += 1",
            "decisions": "request.decisions.CopyFrom(to_message(1 - from_message(request.decisions)))",
        }.items()
    },
    "an adversary with other guesses": (
        {
            "adversary": submitting(
                "SubmitCanaries",
                "request.guesses.CopyFrom(to_message(np.ones_like(from_message(request.guesses))))",
                "adversary.play",
                "TrainingService",
            )
        },
        "adversary reports: guesses",
    ),
}
ONE = ("training.model='pflr*'",)


@pytest.mark.slow
@pytest.mark.parametrize(("parties", "text"), TWINS.values(), ids=TWINS)
def test_a_party_that_cheats_is_named(tmp_path: Path, twins: Twins, parties: Mapping[str, str], text: str) -> None:
    twins(parties)
    texts = reported(verify(play(tmp_path, TOY, *ONE)))
    assert any(one.startswith(f"deal-1: {text}") for one in texts), texts


@pytest.mark.slow
def test_groups_that_leak_are_found_unless_the_deal_declares_them(tmp_path: Path, twins: Twins) -> None:
    held = play(tmp_path, TOY, *ONE, "training.holds_protected=true")
    found = verify(held)
    assert (found.findings, found.columns) == ((), 1)
    twins({"compliance": SENDS_GROUPS})
    leaky = verify(play(tmp_path, TOY, "training.model='rates'", "training.canaries=0"))
    leaks = [finding for finding in leaky.findings if finding.check == "protected"]
    assert leaks
    assert all("developer received what it must not" in finding.text for finding in leaks)


# Networks.

NETWORKS = ("training.steps=20", "training.batch=64")


@pytest.mark.slow
@pytest.mark.parametrize("model", ["s-nn", "f-nn", "dp-nn", "dpf-nn"])
@pytest.mark.parametrize("holds", ["true", "false"])
def test_networks_are_well(tmp_path: Path, model: str, holds: str) -> None:
    folder = play(tmp_path, TOY, f"training.model='{model}'", f"training.holds_protected={holds}", *NETWORKS)
    found = verify(folder)
    assert not found.findings
    (line,) = lines_of(folder)
    told = model in ("f-nn", "dpf-nn") and holds == "false"
    assert line["asked"] == (11 if told else 0)
    assert (line["epsilon_spent"] is not None) == told
    assert line["promised"] == (pytest.approx(8.0, rel=1e-2) if model.startswith("dp") else "inf")
    again = playing.again(open_run(folder))
    assert (again.difference, again.trials) == (None, 1)


# Runs that break off.


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return play(tmp_path_factory.mktemp("whole"), TOY, *ONE, "scenario.trials=3")


@pytest.mark.slow
def test_a_run_that_was_broken_off_is_resumed(whole: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(whole, tmp_path / whole.name))
    path = folder / "trials.jsonl"
    lines = lines_of(folder)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines[:1]))
    done = fairwall("run", folder / "scenario.toml", "--resume", folder)
    assert done.returncode == 0, done.stderr
    assert timeless(lines_of(folder)) == timeless(lines)


STEPS = ("ServeTrial", "SubmitModel", "SubmitCanaries", "SubmitAuditReport")


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("party", ["compliance", "developer", "adversary"])
def test_a_run_in_which_a_party_is_killed_is_resumed_and_well(
    whole: Path, tmp_path: Path, step: str, party: str
) -> None:
    scenario = TOY.replace('model = "lr"', 'model = "pflr*"').replace("trials = 1", "trials = 3")
    file = tmp_path / "toy.toml"
    file.write_text(scenario + f'[[faults.at]]\ntrial = 2\nkind = "kill"\nparty = "{party}"\nstep = "{step}"\n')
    ended = fairwall("run", file, "--out", tmp_path / "runs")
    (folder,) = (tmp_path / "runs").iterdir()
    if ended.returncode:
        assert "Traceback" not in ended.stderr, ended.stderr
        ended = fairwall("run", file, "--resume", folder)
        assert ended.returncode == 0, ended.stderr
    assert timeless(lines_of(folder)) == timeless(lines_of(whole))
    assert [finding for finding in verify(folder).findings if finding.check != "open"] == []
