"""Faults between the parties of a game: whatever goes wrong, nothing is understated, resampled or left.

A run that a fault ends is resumed until every trial is played: its results are those of a run without faults.
"""

from __future__ import annotations

import functools
import json
import math
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args

import psutil
import pytest

from fairwall.rpc.arrays import from_message
from sim.games import GAMES, lay_out
from sim.play.faults import Proxy, planned
from sim.scenarios.scenario import FaultKind, FaultsSection, InjectedFault, LinkName
from sim.scenarios.sweep import ScenarioError
from sim.transcripts.files import CallKey, Transcript, decode, paths, read
from sim.verify.check import verify
from tests.support.command import fairwall

DEADLINES = {"plain": 8.0, "hidden": 8.0, "attacked": 16.0}
"""How long a trial may take. It takes a fraction of a second, and up to two more where something is held up; where a
base model is trained, the first one waits for a large library too."""

START_AND_END_SECONDS = 60.0
"""What a run may take besides: three interpreters start, and have four seconds to leave."""

GROUP = 10
"""How many trials share the parties' start, each with one fault of its own."""

AUDIT = "/fairwall.compliance.v1.AuditService/Audit"
AUDIT_MODELS = "/fairwall.compliance.v1.AuditService/AuditModels"
REPORT = "/fairwall.game.v1.RefereeService/SubmitAuditReport"

SYNTHETIC = """
[data]
source = "synthetic"
n = 30
n0 = 12
scores = "uniform"
"""
VARIANTS = {
    "plain": (SYNTHETIC, ("compliance-referee", "developer-referee", "adversary-referee", "developer-compliance")),
    "hidden": (SYNTHETIC + "hidden = true\n", ("developer-referee", "developer-compliance", "compliance-developer")),
    "attacked": (
        '[data]\nsource = "german"\ntest_size = 30\n[adversary]\nattack = ["loss-test"]\nprobes = 20\n',
        ("developer-referee", "adversary-referee", "developer-compliance", "adversary-developer"),
    ),
}
"""The small games, with the links that carry something in them."""


def scenario_of(variant: str, trials: int, faults: str = "") -> str:
    data, _ = VARIANTS[variant]
    head = f'[scenario]\nname = "small"\ngame = "reveal"\ntrials = {trials}\nseed = 7\n{data}'
    rest = '[compliance]\nmechanism = "conceal"\nepsilon = 10.0\n[developer]\nstrategy = "sensing"\nqueries = 4\n'
    return head + rest + faults


def drawn_faults(seed: int, variant: str, kinds: Sequence[str] = ()) -> str:
    table = f"[faults]\nseed = {seed}\nper_trial = 1\ndeadline = {DEADLINES[variant]}\n"
    table += f"links = {list(VARIANTS[variant][1])}\n"
    return table + (f"kinds = {list(kinds)}\n" if kinds else "")


# A run, watched from outside ------------------------------------------------------------------------------------------


def watched(
    *arguments: object, seconds: float, python: str = sys.executable
) -> tuple[subprocess.CompletedProcess[str], list[psutil.Process]]:
    """Run a command to its end; what became of it, and every process that it started.

    Raises
    ------
    subprocess.TimeoutExpired
        If it hangs.
    """
    seen: set[psutil.Process] = set()
    over = threading.Event()

    def look(pid: int) -> None:
        with suppress(psutil.NoSuchProcess):
            while not over.wait(0.1):
                seen.update(psutil.Process(pid).children(recursive=True))

    with ThreadPoolExecutor(1) as watcher:
        try:
            ended = fairwall(*arguments, seconds=seconds, python=python, on_start=lambda pid: watcher.submit(look, pid))
        finally:
            over.set()
    return ended, list(seen)


def ends_well(*arguments: object, trials: int, python: str = sys.executable) -> tuple[int, list[str]]:
    """Run a command; its status, and what is wrong with how it ended."""
    seconds = max(DEADLINES.values()) * trials + START_AND_END_SECONDS
    ended, children = watched(*arguments, seconds=seconds, python=python)
    status, stderr = ended.returncode, ended.stderr
    wrong = []
    if status not in (0, 1) or "Traceback" in stderr or "Exception in thread" in stderr:
        wrong.append(f"it ended with status {status}: {stderr[-1000:]}")
    if status == 1 and not any(line.startswith("fairwall: ") for line in stderr.splitlines()):
        wrong.append(f"it ended without a reason: {stderr[-1000:]}")
    _, alive = psutil.wait_procs(children, timeout=300)  # reaped by the system, where their parent ended first
    return status, [*wrong, *(f"{process} outlives the run" for process in alive)]


def lines_of(folder: Path) -> list[dict[str, Any]]:
    path = folder / "trials.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def timeless(lines: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{**line, "seconds": 0} for line in lines]


# What must hold of a run's folder, whatever happened ------------------------------------------------------------------

Answer = tuple[bytes, float]
"""The numbers that were told, and what they cost."""


def answers_in(script: Transcript) -> dict[tuple[str, str], list[Answer]]:
    """Find the answers to audits in a transcript, of whichever side, by deal and request id."""
    asked: dict[CallKey, tuple[str, str]] = {}
    answers = defaultdict(list)
    for message in script.messages:
        if message.method not in (AUDIT, AUDIT_MODELS):
            continue
        said = decode(message.method, message.is_request, script.data(message))
        if not message.is_request:
            said = said.answer if message.method == AUDIT_MODELS else said
            answers[asked[message.call]].append((from_message(said.gaps).tobytes(), said.epsilon_charged))
        elif message.call not in asked:
            header = said.header if message.method == AUDIT else said
            asked[message.call] = (header.deal_id, header.request_id)
    return answers


def violations(folder: Path, undisturbed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Compare what the developer was told with what compliance says, and finished trials with undisturbed ones."""
    wrong = []
    expected = {line["trial"]: line for line in timeless(undisturbed)}
    finished = timeless(lines_of(folder))
    wrong += [f"trial {line['trial']} came out differently" for line in finished if line != expected[line["trial"]]]
    if len({line["trial"] for line in finished}) != len(finished):
        wrong.append("a trial stands there twice")
    told: dict[tuple[str, str], set[bytes]] = defaultdict(set)
    scripts = {(script.number, script.party): script for script in map(read, paths(folder))}
    for (number, party), script in scripts.items():
        if party != "developer":
            continue
        heard, compliance = answers_in(script), scripts[number, "compliance"]
        given = answers_in(compliance)
        reports = [
            decode(REPORT, True, compliance.data(message))
            for message in compliance.messages
            if (message.method, message.is_request) == (REPORT, True)
        ]
        for asked, answers in heard.items():
            told[asked] |= {values for values, _ in answers}
            wrong += [f"{asked}: the developer heard what nobody said" for one in answers if one not in given[asked]]
        for report in reports:
            cost = sum(answers[0][1] for (deal, _), answers in heard.items() if deal == report.deal_id)
            if report.epsilon_spent < cost * (1 - 1e-12):
                wrong.append(f"{report.deal_id}: {cost} was sold, and {report.epsilon_spent} is said to be spent")
    # A deal that is played again is dealt the same seed: the same request has the same answer there too.
    return wrong + [f"{asked} has {len(values)} answers" for asked, values in told.items() if len(values) > 1]


@functools.cache
def undisturbed(variant: str) -> list[dict[str, Any]]:
    """Play the game as if there were no faults: once in each process that tests, and as many trials as any test."""
    with tempfile.TemporaryDirectory() as parent:
        file = Path(parent, "small.toml")
        file.write_text(scenario_of(variant, GROUP))
        finished = fairwall("run", file, "--out", parent, "--json", seconds=300)
        assert finished.returncode == 0, finished.stderr
        lines: list[dict[str, Any]] = json.loads(finished.stdout)["trials"]
        return lines


def play_through(
    parent: Path, variant: str, trials: int, faults: str, *jobs: object, python: str = sys.executable
) -> tuple[Path, int, list[str]]:
    """Play a scenario with faults, and go on with it until it is played; the folder, how often, and what was wrong."""
    file = parent / "small.toml"
    file.write_text(scenario_of(variant, trials, faults))
    options: tuple[object, ...] = (*jobs, "--out", parent / "runs")
    wrong: list[str] = []
    for attempt in range(1, 2 * trials + 2):
        kept = [lines_of(folder) for folder in parent.glob("runs/*")]
        status, ended = ends_well("run", file, *options, trials=trials, python=python)
        (folder,) = parent.glob("runs/*")
        wrong += ended + violations(folder, undisturbed(variant))
        if kept and [line for line in lines_of(folder) if line in kept[0]] != kept[0]:
            wrong.append("a finished trial was lost, or played again")
        if status == 0:
            return folder, attempt, wrong
        options = (*jobs, "--resume", folder)
    raise AssertionError(f"it does not come to an end: {wrong}")


# Fifty plans, and a thousand ------------------------------------------------------------------------------------------


def check_plans(parent: Path, seed: int, *jobs: object) -> None:
    variant = list(VARIANTS)[seed % len(VARIANTS)]
    folder, attempts, wrong = play_through(parent, variant, GROUP, drawn_faults(seed, variant), *jobs)
    assert wrong == []
    assert timeless(lines_of(folder)) == timeless(undisturbed(variant))
    found = [finding for finding in verify(folder).findings if finding.check != "open"]
    assert found == [], "transcripts break off where a party was killed, and agree in all else"
    happened = json.loads((folder / "result.json").read_text())["faults"]
    print({"seed": seed, "attempts": attempts, "happened": [fault["kind"] for fault in happened]})  # noqa: T201
    assert happened, "most faults find their moment"
    scenario = lay_out(tomllib.loads((folder / "scenario.toml").read_text()), "test").scenario
    drawn = {(fault.trial, fault.kind) for number in range(1, GROUP + 1) for fault in planned(scenario, number)}
    assert {(fault["trial"], fault["kind"]) for fault in happened} <= drawn, "none that is not in the plan"


@pytest.mark.check
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1))
def test_ten_faults_break_no_promise_and_change_no_result(tmp_path: Path, seed: int) -> None:
    check_plans(tmp_path, seed)


@pytest.mark.slow(seconds=15)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(1, 17))
def test_160_faults_break_no_promise_and_change_no_result(tmp_path: Path, seed: int) -> None:
    check_plans(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(3))
def test_sessions_at_once_have_the_same_faults_and_results(tmp_path: Path, seed: int) -> None:
    check_plans(tmp_path, seed, "--jobs", 2)


@pytest.mark.check
def test_what_only_takes_time_ends_no_run(tmp_path: Path) -> None:
    folder, attempts, wrong = play_through(tmp_path, "plain", 6, drawn_faults(5, "plain", ["delay", "throttle"]))
    assert (attempts, wrong) == (1, [])
    assert timeless(lines_of(folder)) == timeless(undisturbed("plain")[:6])
    assert len(json.loads((folder / "result.json").read_text())["faults"]) >= 3


@pytest.mark.check
@pytest.mark.parametrize(
    ("fault", "said"),
    [
        # Not at the first byte, which may be no call's: then a connection is lost that nobody is using.
        (
            'kind = "drop"\nlink = "developer-compliance"\nafter = 400',
            "developer ERROR fairwall.rpc.process: a call to compliance",
        ),
        (
            'kind = "drop"\nlink = "compliance-referee"\nafter = 100',
            "compliance ERROR fairwall.rpc.process: a call to referee",
        ),
        pytest.param(
            'kind = "kill"\nparty = "compliance"\nstep = "SubmitReveal"',
            "fairwall: compliance was killed by SIGKILL",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            'kind = "pause"\nparty = "compliance"\nstep = "ServeTrial"',
            "fairwall: developer did not finish the trial",
            marks=pytest.mark.slow,
        ),
    ],
    ids=["developer loses compliance", "compliance loses the referee", "killed", "paused for good"],
)
def test_a_run_that_a_fault_ends_says_who_lost_whom(tmp_path: Path, fault: str, said: str) -> None:
    file = tmp_path / "small.toml"
    faults = f"[faults]\ndeadline = 6.0\n[[faults.at]]\ntrial = 2\n{fault}\n"
    file.write_text(scenario_of("plain", 30, faults))
    ended, children = watched("run", file, "--out", tmp_path, seconds=300)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not psutil.wait_procs(children, timeout=1)[1]


# Parties that break a promise are found out ---------------------------------------------------------------------------

BROKEN = {
    "understates": (
        """
from compliance.games import audits as player
whole = player.report_of
def report(case):
    said = whole(case)
    said.epsilon_spent /= 2
    return said
player.report_of = report
""",
        "is said to be spent",
    ),
    "resamples": (
        """
import dataclasses, os
from compliance.answers import audits as case
whole = case.AuditCase._noise
def noise(self, asked):
    return whole(self, dataclasses.replace(asked, request_id=asked.request_id + os.urandom(4).hex()))
case.AuditCase._noise = noise
""",
        "answers",
    ),
}


@pytest.mark.check
@pytest.mark.parametrize("kind", BROKEN)
def test_a_compliance_that_breaks_a_promise_is_found_out(tmp_path: Path, kind: str) -> None:
    patch, said = BROKEN[kind]
    other = tmp_path / "python"
    other.write_text(
        f"#!{sys.executable}\nimport runpy, sys\nsys.argv = sys.argv[3:]\n"
        f"if sys.argv[0] == 'compliance':\n    exec({patch!r})\n"
        "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)\n"
    )
    other.chmod(0o700)
    # The second trial is broken off once it has its answers, and played again.
    fault = '[faults]\n[[faults.at]]\ntrial = 2\nkind = "kill"\nparty = "compliance"\nstep = "SubmitReveal"\n'
    _, attempts, wrong = play_through(tmp_path, "plain", 2, fault, python=str(other))
    assert attempts == 2
    assert any(said in one for one in wrong), wrong


# What goes wrong, and the proxy ------------------------------------------------------------------------------------


def scenario_with(faults: dict[str, Any]) -> Any:
    return lay_out({**tomllib.loads(scenario_of("plain", 2)), "faults": faults}, "test")


def test_a_plan_is_drawn_by_its_seed_for_each_trial_alone() -> None:
    def faults(seed: int, number: int) -> Any:
        drawn = scenario_with({"seed": seed, "per_trial": 3})
        return planned(drawn.cells[0].scenario, number)

    assert faults(1, 4) == faults(1, 4)
    assert len(faults(1, 4)) == 3
    assert faults(1, 4) != faults(1, 5)
    assert faults(1, 4) != faults(2, 4)
    kinds = {fault.kind for number in range(100) for fault in faults(1, number + 1)}
    assert kinds == {*get_args(FaultKind)}


def test_a_scenario_without_faults_is_what_it_was() -> None:
    whole = lay_out(tomllib.loads(scenario_of("plain", 2)), "test")
    assert whole.scenario.faults is None
    assert planned(whole.scenario, 1) == ()
    assert scenario_with({}).digest != whole.digest


def test_every_key_and_kind_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "scenarios.md").read_text().partition("\n## Faults\n")[2]
    keys = [*FaultsSection.model_fields, *InjectedFault.model_fields]
    steps = {"ServeTrial", "SubmitAuditReport"}
    for game in GAMES.values():
        steps |= {method.name for method in game.service.methods if method.name.startswith(("Submit", "Release"))}
    for name in (*keys, *get_args(FaultKind), *get_args(LinkName), *steps):
        assert re.search(rf"\b{name}\b", page), name
    (shown,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert len(scenario_with(tomllib.loads(shown)["faults"]).scenario.faults.at) == 2


@pytest.mark.parametrize(
    ("faults", "said"),
    [
        ({"sed": 1}, "faults.sed: unknown key; did you mean faults.seed?"),
        ({"per_trial": -1}, "faults.per_trial: must be greater than or equal to 0"),
        ({"kinds": ["fire"]}, "faults.kinds: must "),
        ({"at": [{"trial": 1, "kind": "fire"}]}, "faults.at.0.kind: must "),
        ({"at": [{"trial": 1, "kind": "drop"}]}, "faults.at.0: must have a link for drop"),
        ({"at": [{"trial": 1, "kind": "kill", "step": "ServeTrial"}]}, "faults.at.0: must have a party"),
        ({"at": [{"trial": 1, "kind": "kill", "party": "developer"}]}, "faults.at.0: must have a step, or a link"),
        ({"at": [{"trial": 1, "kind": "delay", "link": "developer-referee"}]}, "faults.at.0: must have seconds"),
    ],
)
def test_faults_that_cannot_happen_are_one_line(faults: dict[str, Any], said: str) -> None:
    with pytest.raises(ScenarioError) as refused:
        scenario_with(faults)
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


TEXT = bytes(range(100))
CARRIED = {
    "duplicate": TEXT[:40] + TEXT[40:] * 2,
    "reorder": TEXT[:40] + TEXT[70:] + TEXT[40:70],
    "truncate": TEXT[:70],
    "half-close": TEXT[:40],
    "delay": TEXT,
    "throttle": TEXT,
    "blackhole": TEXT,
}


@pytest.mark.parametrize("kind", CARRIED)
def test_a_proxy_does_to_bytes_what_its_name_says_from_the_byte_that_is_named(kind: FaultKind) -> None:
    happened: list[InjectedFault] = []
    with socket.create_server(("127.0.0.1", 0)) as door:
        proxy = Proxy(f"127.0.0.1:{door.getsockname()[1]}", happened.append)
        fault = InjectedFault(trial=1, kind=kind, link="developer-referee", after=40, seconds=0.1)
        proxy.arm([fault])
        host, _, port = proxy.address.partition(":")
        try:
            with socket.create_connection((host, int(port))) as caller, door.accept()[0] as served:
                served.sendall(b"welcome")
                began = time.monotonic()
                caller.sendall(TEXT)
                caller.shutdown(socket.SHUT_WR)
                with served.makefile("rb") as stream:
                    assert stream.read() == CARRIED[kind]
                took = time.monotonic() - began
                assert happened == [fault]
                assert caller.recv(100) == b"welcome", "the other direction goes on"
        finally:
            proxy.close()
    if kind in ("delay", "blackhole"):
        assert took >= 0.1
    assert math.isfinite(took)
