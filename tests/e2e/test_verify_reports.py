"""`fairwall verify` computes what parties report again: honest runs are well, twins that report otherwise are named.

A twin is a party's own process with one line of it changed; the files of a run are changed so that all digests hold.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from sim.games import read
from sim.games.table import TrialFailed
from sim.play import processes, runner
from sim.replay import playing
from sim.replay.recorded import open_run
from sim.runs.folder import RunFolder, digests
from sim.runs.page import write_report
from sim.runs.trials import read_trials, summarise
from sim.transcripts.files import anchors
from sim.transcripts.findings import Findings
from sim.verify.audit_reports import _Case, _listed
from sim.verify.check import verify
from sim.verify.finding import Verification, VerifyFinding
from tests.support.command import fairwall

GOLDEN = Path(__file__).parents[1] / "golden"
NEEDS_TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the extra for training")

SYNTHETIC = """
[scenario]
name = "small"
game = "reveal"
trials = 2
seed = 3
[data]
source = "synthetic"
n = 40
n0 = 15
scores = "beta(0.5,2)"
[compliance]
metric = "sp"
mechanism = "laplace"
epsilon = 50.0
[developer]
strategy = "single"
"""
TRAINED = """
[scenario]
name = "trained"
game = "reveal"
trials = 1
seed = 3
[data]
source = "german"
test_size = 40
[compliance]
mechanism = "laplace"
epsilon = 50.0
[developer]
strategy = "sensing"
queries = 10
perturbation = 0.1
[adversary]
attack = ["loss-test"]
probes = 20
"""
EXACT = ("compliance.mechanism='exact'", "compliance.epsilon='inf'")
INFERENCE = """
[scenario]
name = "small-inference"
game = "inference"
trials = 1
seed = 3
[data]
source = "TABLE"
protected = "group"
advantaged = "a"
label = "well"
positive = "1"
[developer]
victims = 4
steps = 5
[adversary]
attack = ["loss-test"]
probes = 50
shadows = 0
"""


CHOSEN = (
    *("developer.defence='fft'", "developer.lambdas=[0.5, 2.0]", "developer.tune_steps=5"),
    *("compliance.metric='eodds_max'", "compliance.mechanism='counts'", "compliance.epsilon=1.0"),
)
"""Lambda is chosen by what compliance answers."""


def played(folder: Path, scenario: str, *settings: str) -> Path:
    """Play a scenario, whoever the parties are; the run's folder."""
    file = folder / "scenario.toml"
    file.write_text(scenario)
    sweep = read(str(file), settings)
    run = runner.play(sweep, RunFolder.create(folder / "runs", "small"), lambda _: None).folder
    write_report(run)
    return run


Twins = Callable[[Mapping[str, str]], None]


@pytest.fixture
def twins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Twins:
    """Have parties started with some lines run before their own."""

    def start(lines: Mapping[str, str]) -> None:
        def popen(command: list[str], **options: Any) -> subprocess.Popen[str]:
            party = command[command.index("-m") + 1]
            if party not in lines:
                return subprocess.Popen(command, **options)
            script = tmp_path / f"{party}.py"
            script.write_text(f"{lines[party]}\nfrom {party}.__main__ import main\nmain()\n")
            return subprocess.Popen([command[0], "-I", str(script), *command[-2:]], **options)

        monkeypatch.setattr(processes, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": popen}))

    return start


def reporting(change: str) -> str:
    """Give the lines of a compliance that changes its report."""
    return f"""
import numpy as np
from compliance.games import audits as player
from fairwall.rpc.arrays import from_message, to_message
honest = player.report_of
def report(case):
    request = honest(case)
    audits = request.audits
    {change}
    return request
player.report_of = report
"""


def submitting(method: str, change: str, module: str, service: str) -> str:
    """Give the lines of a party that changes what it submits to a service of the referee's."""
    return f"""
import numpy as np
import {module} as player
from fairwall.rpc.arrays import from_message, to_message
connect = player.{service}Stub
def changing(channel):
    referee = connect(channel)
    honest = referee.{method}
    def submit(request, **options):
        {change}
        return honest(request, **options)
    referee.{method} = submit
    return referee
player.{service}Stub = changing
"""


def reported(found: Verification) -> list[str]:
    """Give what was reported otherwise; nothing else may be found."""
    assert {finding.check for finding in found.findings} <= {"reported"}, found.findings
    return [finding.text for finding in found.findings]


def unchecked(found: Verification) -> list[str]:
    return [note for note in found.notes if note.startswith("not checked")]


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return played(tmp_path_factory.mktemp("honest"), SYNTHETIC)


@pytest.fixture
def copied(honest: Path, tmp_path: Path) -> Path:
    """A run that may be tampered with."""
    return Path(shutil.copytree(honest, tmp_path / "run"))


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a table of people who are alike, so that different parties hold the same rows."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("table") / "people.csv"
    rows = zip(rng.choice(["a", "b"], 400), rng.integers(0, 4, 400), rng.integers(0, 2, 400), strict=True)
    path.write_text("group,grade,well\n" + "".join(f"{group},{grade},{well}\n" for group, grade, well in rows))
    return path


# Honest runs.


def test_what_an_honest_reveal_game_reports_follows_from_its_messages(honest: Path) -> None:
    found = verify(honest)
    assert found.findings == ()
    assert unchecked(found) == []
    assert found.reports == 6  # compliance's, the developer's and a line, twice


@pytest.mark.check
def test_a_base_model_is_trained_again(tmp_path: Path) -> None:
    found = verify(played(tmp_path, TRAINED))
    assert found.findings == ()
    assert unchecked(found) == []
    assert found.reports == 4


@pytest.mark.check
@pytest.mark.parametrize(
    "settings",
    [
        ("data.hidden=true", "compliance.differencing=3"),
        ("compliance.metric='eodds_sum'", *EXACT, "developer.strategy='packed'", "developer.queries=20"),
        pytest.param(
            ("compliance.mechanism='randomized-response'", "developer.strategy='pair'"), marks=pytest.mark.slow
        ),
        pytest.param(("compliance.noise='system'", "compliance.bounding='clamp'"), marks=pytest.mark.slow),
    ],
    ids=["hidden", "two strata", "bought once", "clamped"],
)
def test_other_reveal_games_are_well(tmp_path: Path, settings: tuple[str, ...]) -> None:
    found = verify(played(tmp_path, SYNTHETIC, *settings, "scenario.trials=1"))
    assert found.findings == ()
    assert unchecked(found) == []


@pytest.mark.parametrize("name", ["reveal", "inference"])
def test_the_golden_runs_are_well(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(GOLDEN / name)
    found = verify(Path())
    assert [finding.where for finding in found.findings] == ["result.json"]  # it is not kept
    assert found.reports > 2


@pytest.mark.check
@NEEDS_TORCH
@pytest.mark.parametrize(
    "settings",
    [pytest.param((), id="no defence"), pytest.param(CHOSEN, id="lambda chosen", marks=pytest.mark.slow)],
)
def test_what_an_inference_game_reports_follows(tmp_path: Path, table: Path, settings: tuple[str, ...]) -> None:
    found = verify(played(tmp_path, INFERENCE.replace("TABLE", str(table)), *settings))
    assert found.findings == ()
    about = {note.removeprefix("not checked: ").partition(":")[0] for note in unchecked(found)}
    assert about == ({"strength", "base_scores, base_member_scores"} if settings else set())


@pytest.mark.check
def test_arrays_by_digest_alone_are_noted(tmp_path: Path) -> None:
    large = (
        "scenario.record='digest'",
        "data.n=2000",
        "data.n0=700",
        "developer.strategy='linear'",
        "scenario.trials=1",
    )
    found = verify(played(tmp_path, SYNTHETIC, *large))
    assert found.findings == ()
    assert any("recorded by their digest alone" in note for note in unchecked(found))


# Parties that report otherwise.


OTHERWISE = {
    "smaller": (
        """
    for audit in audits:
        exact, released = from_message(audit.exact), from_message(audit.released)
        audit.exact.CopyFrom(to_message(exact + (released - exact) / 2))""",
        "of size-1: exact[0] is ",
    ),
    "another's": (
        "audits[1].exact.CopyFrom(to_message(np.repeat(from_message(audits[0].exact), 20)))",
        "of metric-2: exact[0] is ",
    ),
    "unasked": ("audits[0].request_id = 'size-9'", "of size-9, which nobody asked"),
    "kept back": ("audits[0].request_id = 'size-9'", "does not report size-1, which it answered"),
    "moved": ("audits.extend([audits.pop(0)])", "reports size-1 after one that was asked later"),
    "no noise": ("audits[1].released.CopyFrom(audits[1].exact)", "of metric-2: released["),
    "charged": ("audits[0].epsilon /= 2", "of size-1: epsilon is "),
    "spent": ("request.epsilon_spent /= 2", "epsilon_spent is 25.0, recomputed "),
    "flagged": ("audits[0].flagged = 1", "of size-1: flagged is 1, recomputed 0"),
}
"""What a compliance does with its report, and what is found."""

QUICK = ("smaller", "moved", "spent")


@pytest.mark.check
@pytest.mark.parametrize(
    ("change", "text"),
    [pytest.param(*OTHERWISE[name], id=name, marks=() if name in QUICK else pytest.mark.slow) for name in OTHERWISE],
)
def test_a_compliance_that_reports_otherwise_is_named(tmp_path: Path, twins: Twins, change: str, text: str) -> None:
    twins({"compliance": reporting(change)})
    settings = ("scenario.trials=1", "developer.strategy='sensing'", "developer.queries=20")
    found = verify(played(tmp_path, SYNTHETIC, *settings))
    texts = reported(found)
    assert any(one.startswith("deal-1: compliance ") and text in one for one in texts), texts
    assert all(finding.where.startswith("transcript/compliance/1.bin entry ") for finding in found.findings)


@pytest.mark.parametrize("times", [1, 2, 3])
def test_a_batch_is_reported_once(times: int) -> None:
    findings, audit = Findings(), SimpleNamespace(request_id="metric-1")
    _listed(findings, SimpleNamespace(place="entry 9"), _Case("deal-1", None, [audit] * times, {}))  # type: ignore[arg-type]
    found = [("entry 9", f"deal-1: compliance reports metric-1 {times} times")] * (times > 1)
    assert list(findings.result().contradictions) == found


EXCHANGED = "audits[0].request_id, audits[1].request_id = audits[1].request_id, audits[0].request_id"


@pytest.mark.check
def test_a_compliance_that_exchanges_two_answers_is_named(tmp_path: Path, twins: Twins) -> None:
    twins({"compliance": reporting(EXCHANGED)})
    partition = ("compliance.metric='abs_sp'", "developer.strategy='absolute'")
    texts = reported(verify(played(tmp_path, SYNTHETIC, *partition, "scenario.trials=1")))
    assert any(text.startswith("deal-1: compliance reports of metric-1: exact") for text in texts), texts
    # Of two kinds it would not get that far.
    with pytest.raises(TrialFailed, match="size queries"):
        played(tmp_path, SYNTHETIC, "developer.strategy='sensing'", "developer.queries=20")


FREE_LATER = """
from compliance.mechanisms.noise_on_gaps import Bounded
calls = []
def is_free(self, facts, epsilon, question=None):
    calls.append(facts)
    return len(calls) > 1
Bounded.is_free = is_free
"""
FREE_AT_ONCE = """
from compliance import ledger
ledger.FREE = object()  # it notices otherwise that what costs nothing has released anew
from compliance.mechanisms.randomized_response import RandomizedResponse as Response
bought, release = Response.is_free, Response.release
def releasing(self, *arguments):
    Response.is_free = bought
    answer = release(self, *arguments)
    Response.is_free = lambda self, facts, epsilon, question=None: True
    return answer
Response.is_free, Response.release = lambda self, facts, epsilon, question=None: True, releasing
"""
NEVER_FREE = """
from compliance.answers import audits as case
from compliance.ledger.accountant import Budget
case.Reusable = type("Nothing", (), {})
Budget.affords = lambda self, losses, loss: True
"""
TOLD_LESS = """
from compliance.answers import audit_service as service
honest = service._answer
def settle(*arguments):
    answer = honest(*arguments)
    answer.epsilon_charged = 5.0
    return answer
service._answer = settle
"""
OVERSPENT = {
    "compliance": """
from compliance.ledger.accountant import Budget
Budget.affords = lambda self, losses, loss: True
""",
    "developer": """
from developer.reveal.auditor import Purse
Purse._share = lambda self, queries: self._epsilon
""",
}
HALVES = {
    "developer": """
from developer.reveal.auditor import Purse
Purse._share = lambda self, queries: self._epsilon / 2
"""
}
CELLS_FOR_NOTHING = """
from compliance.mechanisms.cells import CellsMechanism
CellsMechanism.is_free = lambda self, facts, epsilon, question=None: len(facts) > 0
"""
ASKED = ("developer.strategy='sensing'", "developer.queries=20")
RESPONSE = ("compliance.mechanism='randomized-response'", *ASKED)
CELLS = ("compliance.mechanism='cells'", *ASKED)
CHARGES = {
    "nothing for what comes second": (
        {"compliance": FREE_LATER},
        ("compliance.bounding='clamp'", *ASKED),
        "compliance reports of metric-2: epsilon is 0.0, recomputed ",
    ),
    "nothing for what is bought": (
        {"compliance": FREE_AT_ONCE},
        RESPONSE,
        "compliance reports of size-1: epsilon is 0.0, recomputed 50.0",
    ),
    "again for what was bought": (
        {"compliance": NEVER_FREE},
        RESPONSE,
        "compliance reports of metric-2: epsilon is 50.0, recomputed 0.0",
    ),
    "cells again": (
        {"compliance": NEVER_FREE, **HALVES},
        CELLS,
        "compliance reports of metric-2: epsilon is 25.0, recomputed 0.0",
    ),
    "nothing for finer cells": (
        {"compliance": CELLS_FOR_NOTHING},
        CELLS,
        "compliance reports of metric-2: epsilon is 0.0, recomputed 47.",
    ),
    "other than it told": (
        {"compliance": TOLD_LESS},
        (),
        "compliance reports of metric-1: epsilon is 50.0, recomputed 5.0",
    ),
    "more than there is": (
        OVERSPENT,
        ASKED,
        "compliance reports metric-2, which was more than was left of the budget of 50.0",
    ),
}
"""What a compliance charges, in its answers and in its report alike: by which parties, in which game, what is found."""


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("parties", "settings", "text"),
    [
        pytest.param(*CHARGES[name], id=name, marks=pytest.mark.slow if name.startswith("nothing") else ())
        for name in CHARGES
    ],
)
def test_a_compliance_that_charges_otherwise_is_named(
    tmp_path: Path, twins: Twins, parties: Mapping[str, str], settings: Sequence[str], text: str
) -> None:
    twins(parties)
    texts = reported(verify(played(tmp_path, SYNTHETIC, *settings, "scenario.trials=1")))
    assert any(one.startswith(f"deal-1: {text}") for one in texts), texts


@pytest.mark.check
def test_a_batch_that_is_answered_from_cells_is_well(tmp_path: Path, twins: Twins) -> None:
    twins(HALVES)
    run = played(tmp_path, SYNTHETIC, *CELLS, "scenario.trials=1")
    found = verify(run)
    assert found.findings == ()
    assert unchecked(found) == []
    (line,) = read_trials(run / "trials.jsonl")
    assert line["epsilon_spent"] == 25.0
    assert playing.again(open_run(run)).difference is None


@pytest.mark.check
def test_a_developer_and_an_adversary_that_report_otherwise_are_named(tmp_path: Path, twins: Twins) -> None:
    better = """
        request.accuracy_base += 0.025
        models = from_message(request.accuracy_models) / 2
        request.accuracy_models.CopyFrom(to_message(models))
        request.max_prediction_change /= 2"""
    twins(
        {
            "developer": submitting("SubmitReveal", better, "developer.reveal.play", "RevealService"),
            "adversary": submitting(
                "SubmitLossTest", "request.accuracy_advantaged = 1.0", "adversary.play", "RevealService"
            ),
        }
    )
    texts = reported(verify(played(tmp_path, TRAINED)))
    assert [text.partition(" is ")[0] for text in texts] == [
        "deal-1: developer reports: accuracy_models[0]",
        "deal-1: developer reports: accuracy_base",
        "deal-1: developer reports: max_prediction_change",
        "deal-1: adversary reports: accuracy_advantaged",
    ]


@pytest.mark.slow
@NEEDS_TORCH
def test_scores_other_than_those_that_were_served_are_named(tmp_path: Path, table: Path, twins: Twins) -> None:
    other = """
        for name in ("scores", "base_scores"):
            scores = np.clip(from_message(getattr(request, name)) + np.float32(0.01), 0, 1)
            getattr(request, name).CopyFrom(to_message(scores))"""
    twins({"developer": submitting("SubmitModels", other, "developer.inference", "InferenceService")})
    texts = reported(verify(played(tmp_path, INFERENCE.replace("TABLE", str(table)))))
    assert texts
    assert all(text.startswith("deal-1: developer reports: scores[") for text in texts)
    assert "served" in texts[0]


# A run whose files say otherwise.


def tampered(folder: Path, change: Callable[[list[dict[str, Any]]], object]) -> list[str]:
    """Change the lines of ``trials.jsonl``, and whatever else of the run speaks of them; what is found then."""
    lines = read_trials(folder / "trials.jsonl")
    change(lines)
    (folder / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    result = json.loads((folder / "result.json").read_text())
    result |= {
        "files": digests(folder),
        "transcripts": anchors(folder),
        "summary": summarise(read(str(folder / "scenario.toml")), lines),
    }
    (folder / "result.json").write_text(json.dumps(result))
    write_report(folder)
    found = verify(folder)
    assert {finding.where for finding in found.findings} <= {"trials.jsonl"}
    return reported(found)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "key", ["query_error_mean", "query_error_median", "epsilon_spent", "queries", "leakage", "max_prediction_change"]
)
def test_a_changed_line_is_named(copied: Path, key: str) -> None:
    (text,) = tampered(copied, lambda lines: lines[1].update({key: lines[1][key] / 2}))
    assert text.startswith(f"trial 1 (deal-2): {key} is ")
    assert ", recomputed " in text


def test_lines_that_are_dropped_doubled_or_made_up_are_named(copied: Path) -> None:
    kept = read_trials(copied / "trials.jsonl")
    assert tampered(copied, lambda lines: lines.pop()) == [
        "trial 1 (deal-2) is not there, and the run was played to its end"
    ]
    doubled = tampered(copied, lambda lines: lines.extend((lines[0], kept[1])))
    assert doubled == ["trial 0 (deal-1) has 2 lines, recomputed 1"]
    made_up = {**kept[1], "trial": 7, "seed": 10}
    assert "trial 7: there is no such trial in the scenario" in tampered(copied, lambda lines: lines.append(made_up))


def test_messages_of_a_trial_that_the_scenario_has_not_are_noted(copied: Path) -> None:
    scenario = copied / "scenario.toml"
    scenario.write_text(scenario.read_text().replace("trials = 2", "trials = 1"))
    assert "not checked: deal-2: there is no such trial in the scenario" in unchecked(verify(copied))


@pytest.mark.slow
@NEEDS_TORCH
def test_a_changed_line_of_an_inference_game_is_named(tmp_path: Path, table: Path) -> None:
    own = tmp_path / "own.csv"
    shutil.copy(table, own)
    folder = played(tmp_path, INFERENCE.replace("TABLE", str(own)))
    texts = tampered(folder, lambda lines: lines[0].update(label_gap=1.0, gap=0.5))
    assert [text.partition(" is ")[0] for text in texts] == ["trial 0 (deal-1): gap", "trial 0 (deal-1): label_gap"]
    own.unlink()
    told = json.loads(fairwall("verify", folder, "--json", seconds=300).stdout)
    (note,) = (note for note in told["notes"] if note.startswith("not checked"))
    assert note.startswith("not checked: lines of trials.jsonl: what was dealt cannot be drawn again")


# A run that was broken off.

KILLED = """
import os, signal
from developer.reveal import play as player
given = player._given
def dying(audits, deal, *others):
    if deal.deal_id == "deal-2":
        os.kill(os.getpid(), signal.SIGKILL)
    return given(audits, deal, *others)
player._given = dying
"""


@pytest.mark.check
def test_of_a_run_that_was_broken_off_what_is_there_is_checked(tmp_path: Path, twins: Twins) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(SYNTHETIC)
    sweep = read(str(file))
    folder = RunFolder.create(tmp_path / "runs", "small")
    twins({"developer": KILLED})
    with pytest.raises(TrialFailed):
        runner.play(sweep, folder, lambda _: None)
    found = verify(folder.path)
    assert {finding.check for finding in found.findings} == {"open"}
    assert found.reports == 3
    twins({})
    runner.play(sweep, RunFolder.resume(folder.path, sweep), lambda _: None)
    found = verify(folder.path)
    # The session that was killed stays as it is.
    assert {finding.check for finding in found.findings} == {"open"}
    assert {finding.where for finding in found.findings} >= {"transcript/developer/1.bin"}
    assert not any(finding.where.endswith("/2.bin") for finding in found.findings)
    assert found.reports == 6
    lines = read_trials(folder.path / "trials.jsonl")
    lines[0]["leakage"] += 1
    (folder.path / "trials.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    changed = [finding for finding in verify(folder.path).findings if finding.check == "reported"]
    text = f"trial 0 (deal-1): leakage is {lines[0]['leakage']!r}, recomputed {lines[0]['leakage'] - 1!r}"
    assert changed == [VerifyFinding("reported", "trials.jsonl", text)]


def test_a_transcript_that_is_gone_is_no_crash(copied: Path) -> None:
    for party in ("compliance", "developer", "referee", "adversary"):
        shutil.rmtree(copied / "transcript" / party)
        if party != "adversary":
            assert "reported" not in {finding.check for finding in verify(copied).findings}
