"""The conformance test, tested: sound servers pass it, each broken one is convicted by the check that names it."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import tomllib
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from compliance.deployment import answer_value
from compliance.deployment.policy.loading import load
from compliance.deployment.policy.reading import read
from fairwall.rpc.server import CALLS_PER_CALLER
from sim.conformance import cases, open_calls, sample_deployments, target
from sim.conformance import command as starting
from sim.conformance.cases import Outcome
from sim.conformance.inputs import ConformanceError
from sim.conformance.subject import ServerUnderTest
from sim.conformance.target import Target
from sim.conformance.world import CaseState
from sim.transcripts.methods import descriptor_set
from tests.broken import Broken, table
from tests.support import command, postgres_server

ROOT = Path(__file__).parents[2]
BROKEN = table()
SECOND = ROOT / "tests" / "second_server" / "server.py"
OWN = f"{sys.executable} -I -m compliance --policy {{policy}}"
KINDS = {"C": "compliance", "D": "developer", "R": "referee", "K": "client"}
"""What is tested, by the letter of a check's number."""

Run = Callable[..., subprocess.CompletedProcess[str]]


# One for each kind of defect: of each party, and of what the documentation promises. The rest are `slow`.
FIRST = (
    "client/new_id_when_lost",
    "developer/answers_any_request",
    "referee/takes_any_guess",
    "leaks_at_high_m",
    "charges_repeats",
    "accepts_nan",
    "trusts_metadata",
    "refusals_name_the_group",
    "answers_other_versions",
    "counts_by_group_anew",
    "rappor_as_it_is",
    "forgets_who_is_revoked",
)


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Target:
    """A kit, and what it says of itself."""
    return target.read(sample_deployments.make(tmp_path_factory.mktemp("kit") / "kit"))


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The command that starts the second server."""
    descriptors = tmp_path_factory.mktemp("descriptors") / "protocol"
    descriptors.write_bytes(descriptor_set().SerializeToString())
    return f"{sys.executable} -I {SECOND} --descriptors {descriptors} --policy {{policy}}"


def outcomes_of(known: Target, command: str, *numbers: str, kind: str = "compliance") -> list[Outcome]:
    """What comes of the checks of these numbers, or of all of a kind, against what a command starts."""
    chosen = [case for case in cases.read(kind) if not numbers or case.number in numbers]
    with ServerUnderTest(known, command) as subject:
        return list(cases.run(subject, kind, chosen))


def broken(outcomes: list[Outcome]) -> list[str]:
    return [cases.line(outcome) for outcome in outcomes if outcome.verdict != "passed"]


MORE = frozenset(
    {
        *("C130", "C131", "C132", "C224", "C410", "C525", "C526", "C528", "C529", "C550", "C551", "C966", "C970"),
        *("C974", "C975", "C976"),
        *(f"C43{number}" for number in range(5)),
    }
)
"""Checks of other subjects that ask for what not every server has: a service, a policy, a mechanism."""


def without_releases(outcomes: list[Outcome]) -> list[Outcome]:
    """What comes of the other checks, where a server releases nothing and has one mechanism: those are not run."""
    subjects = ("releases", "mechanisms", "groups", "quotas", "sealed", "tables", "committed", "replicas")
    others = [each for each in outcomes if each.case.subject in subjects or each.case.number in MORE]
    assert all(outcome.verdict == "not run" for outcome in others)
    needs = "releases attributes$|counts by group$|serves the policy |says what answers will|knows its rows by ids$"
    assert all(re.match(f"needs a server that ({needs})", each.text) for each in others)
    return [outcome for outcome in outcomes if outcome not in others]


# Sound servers.


@pytest.mark.slow(seconds=60)
def test_the_kit_asks_for_nothing_that_is_worth_less_than_a_guess(known: Target) -> None:
    """A service that sells no such answers is put to every check that is not about a mechanism of its own."""
    for name, deployment in known.deployments.items():
        if deployment.mechanism and deployment.policy.startswith(name) and name not in ("lopsided", "few"):
            ((_, its),) = read(known.folder / deployment.policy).datasets.items()
            if its.data.file is not None:  # people in an engine answer nothing else than those in a file
                answer_value.check(its, next(iter(load(its)[0].values())))


@pytest.mark.check
@pytest.mark.timeout(300)
def test_our_own_server_passes_as_the_page_starts_it(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "conformance.md").read_text()
    (line,) = re.findall(r"^fairwall (test conformance .* 'fairwall deploy serve .*)$", page, re.MULTILINE)
    words = [each.replace("fairwall deploy", f"{sys.executable} -I -m sim deploy") for each in shlex.split(line)]
    done = command.fairwall(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.slow(seconds=120)
@pytest.mark.timeout(300)
def test_our_own_server_keeps_what_it_sells_in_a_database_as_well(tmp_path: Path) -> None:
    """Repeats, budgets, kills and a full disk: all other checks are passed that way too."""
    script = ROOT / "tests" / "support" / "postgres_service.py"
    start = f"{sys.executable} -I {script} {postgres_server.shared().url()} --policy {{policy}}"
    numbers = (
        "C301",
        "C303",
        "C305",
        "C307",
        "C308",
        "C402",
        "C403",
        "C404",
        "C408",
        "C422",
        "C423",
        "C730",
        "C731",
        "C737",
        "C841",
    )
    only = [word for number in numbers for word in ("--only", number)]
    done = command.fairwall("test", "conformance", "compliance", "--start", start, *only, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(numbers)} passed" in done.stdout


PARTS = 8


def part_of_all(part: int) -> list[str]:
    """The numbers of some checks: each is in one part, and what is alike in the same one."""
    numbers = [case.number for case in cases.read("compliance")]
    return numbers[len(numbers) * part // PARTS : len(numbers) * (part + 1) // PARTS]


@pytest.mark.slow(seconds=120)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_the_sound_server_passes_every_check(known: Target, part: int) -> None:
    assert broken(outcomes_of(known, OWN, *part_of_all(part))) == []


@pytest.mark.slow(seconds=60)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
def test_a_server_without_this_project_s_python_passes_every_check(known: Target, second: str, part: int) -> None:
    assert broken(without_releases(outcomes_of(known, second, *part_of_all(part)))) == []


def test_a_server_that_releases_nothing_is_not_put_to_the_checks_of_releases(known: Target, second: str) -> None:
    (other,) = without_releases(outcomes_of(known, second, "C101", "C904", "C906", "C916"))
    assert other.verdict == "passed"


# A referee lets waiting calls wait for as long as it does; a client that waits is tried at several clocks.
@pytest.mark.check
@pytest.mark.parametrize(
    "kind", ["developer", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("referee", "client"))]
)
def test_our_own_developer_referee_and_client_pass_every_check(fairwall: Run, kind: str) -> None:
    told = fairwall("test", "conformance", kind, "--reference")
    assert told.returncode == 0, told.stdout
    assert told.stderr == ""
    assert re.search(r"^(\d+) checks: \1 passed$", told.stdout, re.MULTILINE)


def test_the_second_server_uses_nothing_of_this_project() -> None:
    imported = {
        alias.name.split(".")[0]
        for node in ast.walk(ast.parse(SECOND.read_text()))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in (node.names if isinstance(node, ast.Import) else [ast.alias(str(node.module))])
    }
    assert imported - sys.stdlib_module_names == {"grpc", "google"}


@pytest.mark.check
@pytest.mark.parametrize("late", [0, 3])
def test_a_call_that_finds_no_room_to_be_held_is_opened_again(
    known: Target, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    """The call that asks whether there is room left may take the place of one that was to be held.

    Its end may be seen `late`: a call that is refused at once is open here until the refusal has come.
    """
    hold = open_calls.Hold.run

    def crowded(self: open_calls.Hold, world: CaseState) -> None:
        hold(self, world)
        crowded_out = world.held[-1].call
        crowded_out.cancel()
        not_yet = iter([False] * late)
        monkeypatch.setattr(crowded_out, "done", lambda: next(not_yet, True))

    monkeypatch.setattr(open_calls.Hold, "run", crowded)
    assert broken(outcomes_of(known, OWN, "C705")) == []


# Broken servers.


def said(path: Path) -> str:
    return path.read_text(errors="replace") if path.exists() else ""


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[], str]:
    """What all that is started for a check has said on stderr, once it has ended."""
    words: list[str] = []
    start, ended = starting.start, ServerUnderTest.end

    def end(self: ServerUnderTest, deployment: str, **how: bool) -> None:
        ended(self, deployment, **how)
        words.append(said(self._said(deployment) / "stderr"))

    def told(*asked: Any, stderr: int, **named: Any) -> subprocess.Popen[str]:
        if stderr != subprocess.DEVNULL:
            return start(*asked, stderr=stderr, **named)
        with (tmp_path / "said").open("ab") as file:  # a client's, which the checks do not listen to
            return start(*asked, stderr=file, **named)

    monkeypatch.setattr(ServerUnderTest, "end", end)
    monkeypatch.setattr(starting, "start", told)
    return lambda: "\n".join([*words, said(tmp_path / "said")])


@pytest.mark.check
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FIRST else pytest.mark.slow(seconds=5)) for name in BROKEN]
)
def test_a_mutant_is_killed_by_the_check_that_names_it(known: Target, name: str, heard: Callable[[], str]) -> None:
    convict(known, f"-m tests.broken {name}", BROKEN[name], heard)


def convict(known: Target, program: str, row: Broken, heard: Callable[[], str]) -> None:
    """Put a broken server to the check that it names; AssertionError if that finds nothing, or just that it raises."""
    kind = KINDS[row.check[0]]
    places = "--address {address} --credentials {credentials}" if kind == "client" else "--policy {policy}"
    (outcome,) = outcomes_of(known, f"{sys.executable} {program} {places}", row.check, kind=kind)
    assert outcome.verdict == "failed", cases.line(outcome)
    if row.raises:
        return
    assert "refused as INTERNAL" not in outcome.text, "it raises, and breaks no promise by itself"
    assert "Traceback (most recent call last)" not in heard(), f"it raises, and breaks no promise by itself: {heard()}"


RAISES = """
from fairwall.client import gaps
from sim.conformance.reference_client import main


def ask(*_, **__):
    raise ValueError("stale")


gaps.ask = ask
main()
"""


def test_one_that_raises_where_it_should_cheat_is_no_mutant(
    known: Target, heard: Callable[[], str], tmp_path: Path
) -> None:
    (tmp_path / "stale.py").write_text(RAISES)
    with pytest.raises(AssertionError, match="it raises, and breaks no promise by itself"):
        convict(known, str(tmp_path / "stale.py"), BROKEN["client/new_id_when_lost"], heard)


@pytest.mark.check
def test_mutants_override_what_there_is_and_as_it_is_called() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.overrides"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("", "")


def test_there_are_enough_mutants_and_the_page_lists_them_all() -> None:
    assert set(FIRST) <= set(BROKEN)
    assert {BROKEN[name].check[0] for name in FIRST} == KINDS.keys()
    assert len([name for name in BROKEN if name.startswith("held_back/")]) >= 15
    page = (ROOT / "docs" / "conformance.md").read_text()
    rows = re.findall(r"^\* ([A-Z]\d{3}): (`.+`)$", page, re.MULTILINE)
    listed = [(name, number) for number, names in rows for name in re.findall(r"`([a-z0-9_/]+)`", names)]
    assert sorted(listed) == sorted((name, row.check) for name, row in BROKEN.items())
    assert all(row.defect.endswith(".") for row in BROKEN.values()), "the page sends its readers there"


# Cases.


@pytest.mark.slow(seconds=40)
def test_a_policy_that_a_check_changes_is_put_back_for_the_next(known: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = ("C762", "C763", "C955")
    assert broken(outcomes_of(known, OWN, *numbers)) == []
    # The broken twin accuses a sound server: its share is as the check before has left it.
    monkeypatch.setattr(CaseState, "put_back", lambda _: None)
    (accused,) = broken(outcomes_of(known, OWN, *numbers))
    assert "C955" in accused
    assert "BUDGET_EXHAUSTED" in accused


@pytest.mark.check
def test_a_policy_stays_changed_while_other_checks_are_run(known: Target, tmp_path: Path) -> None:
    """One check waits between what it changes and what comes of it; meanwhile others begin and end."""
    spent = '{ do = "audit", id = "first", epsilon = 1, expect = { refused = ["BUDGET_EXHAUSTED"] } }'
    steps = '{ do = "restart", how = "anew" }, { do = "policy", set = { "developers.alice.epsilon" = 0.5 } }'
    head = 'sentence = "Every call needs a deadline of at most one hour."\naccounts = false\n'
    waits = f'[[case]]\nnumber = "X901"\ntitle = "waits"\ndeployment = "guarded"\n{head}'
    other = f'[[case]]\nnumber = "X902"\ntitle = "other"\ndeployment = "little"\n{head}'
    (tmp_path / "own.toml").write_text(
        f'{waits}steps = [{steps}, {{ do = "later", seconds = 3 }}, {spent}]\n{other}steps = [{steps}]\n'
    )
    own = [case for case in cases.read("compliance", [tmp_path]) if case.number in ("X901", "X902")]
    with ServerUnderTest(known, OWN) as subject:
        assert broken(list(cases.run(subject, "compliance", own))) == []


def test_strangers_hold_more_calls_open_than_all_who_may_ask_have_together(known: Target) -> None:
    """Else a server that gives strangers room has some left for those who may ask."""
    (case,) = (case for case in cases.read("compliance") if case.number == "C711")
    held_open = sum(step.calls for step in case.steps if isinstance(step, open_calls.Hold))
    policy = tomllib.loads((known.folder / known.deployments["main"].policy).read_text())
    assert held_open > CALLS_PER_CALLER * (len(policy["developers"]) + 1)


@pytest.mark.parametrize("kind", KINDS.values())
def test_every_case_tests_a_sentence_of_the_pages(kind: str) -> None:
    names = ["protocol", "serving", "groups", "release", "operating", "mechanisms"]
    names += ["sealed", "tables", "committed", "replicas"]
    pages = [" ".join((ROOT / "docs" / f"{name}.md").read_text().split()) for name in names]
    read = cases.read(kind)
    assert {case.sentence for case in read if not any(case.sentence in page for page in pages)} == set()
    assert len({case.title for case in read}) == len(read)


OWN_CASE = """
[[case]]
number = "X901"
title = "somebody's own case"
sentence = "Every call needs a deadline of at most one hour."
steps = [{ do = "audit", predictions = { put = [[0, 0, nan]] } }]
"""


def test_anybody_adds_a_case_as_a_file(known: Target, second: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(OWN_CASE)
    (case,) = (case for case in cases.read("compliance", [tmp_path]) if case.number == "X901")
    with ServerUnderTest(known, second) as subject:
        (outcome,) = cases.run(subject, "compliance", [case])
        assert outcome.verdict == "failed"
        assert outcome.text == ("step 1: a call was refused as PREDICTIONS_NOT_FINITE; it should have been answered")
        (now_known,) = cases.run(subject, "compliance", [case], frozenset({"X901"}))
        assert now_known.verdict == "known failure"


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("put", "pit", "X901: steps.0.audit.predictions.pit: Extra inputs are not permitted"),
        ('"audit"', '"audits"', "X901: steps.0: Input tag 'audits' found using 'do' does not match"),
        ('"X901"', '"C101"', "C101: there is a case of that number already"),
        ("[[case]]", "[case]", r"a file of cases has \[\[case\]\] sections"),
        ('"somebody', "somebody", "not valid TOML"),
        (
            "nan]]",
            'nan]] }, expect = { refused = ["NO_REASON"]',
            "X901: steps.0.audit.expect.refused.0: Value error, must be a reason of docs",
        ),
        (
            "put = [[0, 0, nan]]",
            'models = "many"',
            "X901: steps.0.audit.predictions.models: Value error, must be a number, or such as",
        ),
    ],
)
def test_a_case_with_a_mistake_is_one_line_that_names_it(tmp_path: Path, old: str, new: str, why: str) -> None:
    (tmp_path / "own.toml").write_text(OWN_CASE.replace(old, new))
    with pytest.raises(ConformanceError, match=f"own.toml: {why}") as caught:
        cases.read("compliance", [tmp_path])
    assert "\n" not in str(caught.value)


# The command.


@pytest.mark.check
def test_the_command_tells_people_and_programs_what_fails(fairwall: Run, tmp_path: Path) -> None:
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "own.toml").write_text(OWN_CASE)
    (tmp_path / "known").write_text("# these fail\nC101 because of nothing\n")
    asked = ("test", "conformance", "compliance", "--reference", "--cases", "cases", "--known-failures", "known")
    chosen = ("--only", "C101", "--only", "X901", "--only", "C217")
    told = fairwall(*asked, *chosen, "--junit", "junit.xml")
    assert told.returncode == 1, told.stderr
    lines = told.stdout.splitlines()
    assert lines[0] == "C101  NOW PASSES     a developer that the policy names is answered"
    assert "X901  FAILED" in told.stdout
    assert '        protocol: "Every call needs a deadline of at most one hour."' in lines
    assert lines[-1] == "3 checks: 1 now passes, 1 passed, 1 failed"
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()  # noqa: S314 - our own
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["skipped"]) == ("3", "2", "0")
    assert [len(entry.findall("failure")) for entry in suite] == [1, 0, 1]


@pytest.mark.check
def test_the_command_prints_json_and_ends_well_where_all_is_well(fairwall: Run) -> None:
    told = fairwall("test", "conformance", "compliance", "--reference", "--only", "C101", "--json")
    assert told.returncode == 0, told.stderr
    record = json.loads(told.stdout)
    assert record["conforms"] is True
    assert [(check["number"], check["verdict"]) for check in record["checks"]] == [("C101", "passed")]


@pytest.mark.check
def test_a_server_that_is_served_already_is_tested_too(fairwall: Run, tmp_path: Path) -> None:
    made = fairwall("test", "conformance", "kit", "kit")
    assert made.stdout == "kit/target.toml\n"
    with serving(tmp_path / "kit" / "main" / "policy.toml") as address:
        told = fairwall(
            *("test", "conformance", "compliance", "--address", address, "--certs", "kit/certificates", "--json"),
            *("--only", "C101", "--only", "C308", "--only", "C601"),
        )
    assert told.returncode == 0, told.stderr
    checks = {check["number"]: (check["verdict"], check["text"]) for check in json.loads(told.stdout)["checks"]}
    assert checks == {
        "C101": ("passed", ""),
        "C308": ("not run", "needs a command that starts the server again"),
        "C601": ("not run", "needs a deployment 'mirror'"),
    }


RESTART = """
kill -9 $(cat pid)
rm address
"{python}" -I -m compliance --policy kit/main/policy.toml > address 2> log &
echo $! > pid
while ! [ -s address ]; do sleep 0.05; done
cat address
"""


@pytest.mark.check
def test_a_wrapper_leaves_no_server_behind(known: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "wrapper").write_text(f'{sys.executable} -I -m compliance --policy "$1" &\nwait\n')
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    try:
        # It is started, ended, killed, and started anew.
        assert broken(outcomes_of(known, f"sh {tmp_path}/wrapper {{policy}}", "C308")) == []
        assert not (left := served_from(tmp_path)), left
    finally:
        for process in served_from(tmp_path):
            process.kill()


def served_from(folder: Path) -> list[psutil.Process]:
    """The servers whose policies lie in a folder."""
    processes = psutil.process_iter(["cmdline"])
    return [
        each
        for each in processes
        if "compliance" in (words := each.info["cmdline"] or []) and str(folder) in str(words)
    ]


@pytest.mark.check
def test_a_server_that_somebody_else_restarts_is_tested_for_what_it_keeps(fairwall: Run, tmp_path: Path) -> None:
    fairwall("test", "conformance", "kit", "kit")
    (tmp_path / "restart").write_text(RESTART.format(python=sys.executable))
    # The first start has nobody to kill.
    (tmp_path / "pid").write_text("$$$$")
    (tmp_path / "address").touch()
    started = subprocess.run(
        ["sh", "restart"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=300, check=True
    )
    try:
        told = fairwall(
            *("test", "conformance", "compliance", "--address", json.loads(started.stdout)["address"]),
            *("--certs", "kit/certificates", "--restart", "sh restart", "--only", "C308", "--json"),
        )
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert told.returncode == 0, told.stdout + told.stderr
    assert json.loads(told.stdout)["counts"] == {"passed": 1}


@contextlib.contextmanager
def serving(policy: Path) -> Iterator[str]:
    """A server that somebody else has started; its address."""
    command = [sys.executable, "-I", "-m", "compliance", "--policy", str(policy)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.kill()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "say what is tested: --address, --start or --reference"),
        (("--address", "127.0.0.1:1"), "--address: needs --certs"),
        (("--address", "127.0.0.1:1", "--certs", "nowhere/certificates"), "nowhere/target.toml: cannot be read"),
        (("--start", "false {policy}"), "--start: the command did not print its address for waiting"),
        (("--reference", "--only", "C999"), "--only: no check C999"),
        (("--reference", "--cases", "nowhere"), "nowhere: no case in it"),
        (("--reference", "--known-failures", "nowhere"), "nowhere: cannot be read: No such file"),
    ],
)
def test_what_cannot_be_tested_is_one_line_and_status_2(fairwall: Run, arguments: tuple[str, ...], why: str) -> None:
    told = fairwall("test", "conformance", "compliance", *arguments)
    assert told.returncode == 2
    assert re.fullmatch(rf"fairwall: {re.escape(why)}.*\n", told.stderr)
