"""Faults between the parties and beneath the ledger: whatever goes wrong, nothing is understated, resampled or left.

A run that a fault ends is gone on with, until every trial is played: it has come out then as if nothing had happened.
"""

from __future__ import annotations

import functools
import json
import math
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Any, get_args

import grpc
import numpy as np
import psutil
import pytest

from compliance.accountant import Budget
from compliance.books import Entry
from compliance.case import Case, game_case, values_of
from compliance.ledger_file import inspect
from compliance.mechanisms import MECHANISMS
from compliance.records import Records
from compliance.service import AuditService
from developer.client import AuditClient, AuditRefused, AuditUnavailable
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.referee_service_pb2_grpc import (
    RefereeServiceServicer,
    RefereeServiceStub,
    add_RefereeServiceServicer_to_server,
)
from fairwall.rpc import channel, identity, server
from fairwall.rpc.arrays import from_message
from sim.certificates import write
from sim.faults import Proxy, planned
from sim.pki import mint
from sim.plan import ScenarioError, plan
from sim.scenario import Fault, FaultKind, FaultsSection, LinkName, StepName
from sim.transcripts import CallKey, Transcript, decode, paths, read
from sim.verify import verify
from tests.command import fairwall

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
    _, alive = psutil.wait_procs(children, timeout=1)
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
        finished = fairwall("run", file, "--out", parent, "--json", seconds=100)
        assert finished.returncode == 0, finished.stderr
        lines: list[dict[str, Any]] = json.loads(finished.stdout)["trials"]
        return lines


def play_through(parent: Path, variant: str, trials: int, faults: str, patch: str = "") -> tuple[Path, int, list[str]]:
    """Play a scenario with faults, and go on with it until it is played; the folder, how often, and what was wrong."""
    file = parent / "small.toml"
    file.write_text(scenario_of(variant, trials, faults))
    options = ("--out", parent / "runs")
    wrong: list[str] = []
    for attempt in range(1, 2 * trials + 2):
        kept = [lines_of(folder) for folder in parent.glob("runs/*")]
        status, ended = ends_well("run", file, *options, trials=trials, python=patch or sys.executable)
        (folder,) = parent.glob("runs/*")
        wrong += ended + violations(folder, undisturbed(variant))
        if kept and [line for line in lines_of(folder) if line in kept[0]] != kept[0]:
            wrong.append("a finished trial was lost, or played again")
        if status == 0:
            return folder, attempt, wrong
        options = ("--resume", folder)
    raise AssertionError(f"it does not come to an end: {wrong}")


# Fifty plans, and a thousand ------------------------------------------------------------------------------------------


def check_plans(parent: Path, seed: int) -> None:
    variant = list(VARIANTS)[seed % len(VARIANTS)]
    folder, attempts, wrong = play_through(parent, variant, GROUP, drawn_faults(seed, variant))
    assert wrong == []
    assert timeless(lines_of(folder)) == timeless(undisturbed(variant))
    found = [finding for finding in verify(folder).findings if finding.check != "open"]
    assert found == [], "transcripts break off where a party was killed, and agree in all else"
    happened = json.loads((folder / "result.json").read_text())["faults"]
    print({"seed": seed, "attempts": attempts, "happened": [fault["kind"] for fault in happened]})  # noqa: T201
    assert happened, "most faults find their moment"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(5))
def test_ten_faults_break_no_promise_and_change_no_result(tmp_path: Path, seed: int) -> None:
    check_plans(tmp_path, seed)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(5, 105))
def test_a_thousand_faults_break_no_promise_and_change_no_result(tmp_path: Path, seed: int) -> None:
    check_plans(tmp_path, seed)


def test_what_only_takes_time_ends_no_run(tmp_path: Path) -> None:
    folder, attempts, wrong = play_through(tmp_path, "plain", 6, drawn_faults(5, "plain", ["delay", "throttle"]))
    assert (attempts, wrong) == (1, [])
    assert timeless(lines_of(folder)) == timeless(undisturbed("plain")[:6])
    assert len(json.loads((folder / "result.json").read_text())["faults"]) >= 3


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ('kind = "drop"\nlink = "developer-compliance"', "developer ERROR fairwall.rpc.process: a call to compliance"),
        ('kind = "drop"\nlink = "compliance-referee"', "compliance ERROR fairwall.rpc.process: a call to referee"),
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
    ended, children = watched("run", file, "--out", tmp_path, seconds=100)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert not psutil.wait_procs(children, timeout=1)[1]


# Parties that break a promise are found out ---------------------------------------------------------------------------

BROKEN = {
    "understates": (
        """
import compliance.player as player
whole = player._report
def report(deal_id, case):
    said = whole(deal_id, case)
    said.epsilon_spent /= 2
    return said
player._report = report
""",
        "is said to be spent",
    ),
    "resamples": (
        """
import itertools, os
from compliance import case
whole = case.Case._noise
def noise(self, request_id):
    return whole(self, request_id + os.urandom(4).hex())
case.Case._noise = noise
""",
        "answers",
    ),
}


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
    _, attempts, wrong = play_through(tmp_path, "plain", 2, fault, str(other))
    assert attempts == 2
    assert any(said in one for one in wrong), wrong


# A deployment: its client asks again by itself ------------------------------------------------------------------------

PEOPLE = 60
CHARGE = 2.0**-10  # adds up without rounding
PLENTY = 2.0**20
PREDICTIONS = np.linspace(0, 1, PEOPLE)
POLICY = """
[deployment]
name = "loans"
listen = "127.0.0.1:0"
credentials = "certificates/compliance"
ledger = "ledger/ledger.sqlite"
seal = "seal/head"
[data]
source = "people.csv"
protected = "group"
advantaged = "a"
label = "repaid"
positive = "1"
minimum_group = 5
[audit]
metrics = ["sp"]
mechanism = "laplace"
queries_max = 1
[budget]
epsilon = {epsilon}
[developers]
alice.epsilon = {epsilon}
"""

CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static volatile long long *moved;
__attribute__((constructor)) static void begin(void) {
    moved = mmap(0, sizeof *moved, PROT_READ, MAP_SHARED, open(getenv("MOVED_CLOCK"), O_RDONLY), 0);
}
int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, now);
    if (which == CLOCK_REALTIME && moved) now->tv_sec += *moved;
    return failed;
}
time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into) *into = now.tv_sec;
    return now.tv_sec;
}
int gettimeofday(struct timeval *now, void *zone) {
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    now->tv_sec = precise.tv_sec;
    now->tv_usec = precise.tv_nsec / 1000;
    return 0;
}
"""
"""A wall clock that is off by as many seconds as a file says: of Python, of grpc and of the library that checks
certificates."""


class Deployment:
    """A folder that the service is started from."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        write(folder / "certificates", "loans", ["alice"], 1)
        rows = [f"{'ab'[i % 2]},{i // 2 % 2}" for i in range(PEOPLE)]
        (folder / "people.csv").write_text("\n".join(["group,repaid", *rows]) + "\n")
        (folder / "people.csv").chmod(0o600)
        (folder / "policy.toml").write_text(POLICY.format(epsilon=PLENTY))
        self.environment: dict[str, str] | None = None

    @property
    def log(self) -> str:
        return (self.folder / "log").read_text()

    def client(self, address: str) -> AuditClient:
        return AuditClient(address, self.folder / "certificates" / "developer-alice")

    def entries(self) -> dict[str, Entry]:
        """What was charged, by request id: the chain is whole, no id stands there twice, and the sum is right."""
        found = inspect(self.folder / "ledger" / "ledger.sqlite")
        assert found.fault == ""
        charged = [record for record in found.records if isinstance(record, Entry)]
        entries = {entry.request.request_id: entry for entry in charged}
        assert len(entries) == len(charged)
        assert found.books.standing("loans").spent == CHARGE * len(entries)
        return entries

    def start(self, log: Any) -> subprocess.Popen[str]:
        command = [sys.executable, "-I", "-m", "compliance", "--policy", str(self.folder / "policy.toml")]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=self.environment)

    @contextmanager
    def served(self) -> Iterator[tuple[str, subprocess.Popen[str]]]:
        """Start the service, and wait until it says where it listens."""
        with (self.folder / "log").open("a") as log, self.start(log) as process:
            try:
                assert process.stdout is not None
                line = process.stdout.readline()
                assert line, self.log[-500:]
                yield json.loads(line)["address"], process
            finally:
                process.kill()


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


def ask(audits: AuditClient, request_id: str) -> bytes:
    answer = audits.ask(PREDICTIONS, "sp", CHARGE, request_id=request_id)
    assert answer.epsilon_charged == CHARGE
    return answer.gaps.tobytes()


def insist(audits: AuditClient, request_id: str) -> bytes:
    """Ask until there is an answer: an answer that was lost has been paid for."""
    for _ in range(20):
        with suppress(AuditUnavailable):
            return ask(audits, request_id)
        time.sleep(0.2)  # as long as a client stays away from an address at first
    raise AssertionError("no answer came")


LINK_KINDS = ("delay", "throttle", "blackhole", "drop", "duplicate", "truncate", "reorder", "half-close")


def faults_of(seed: int) -> list[Fault]:
    """Up to three for one request, none of which lasts long."""
    chance = random.Random(seed)  # noqa: S311
    kinds = [kind for kind in LINK_KINDS if kind != "truncate" or seed % 10 == 9]  # which takes half a minute
    return [
        Fault(
            trial=1,
            kind=chance.choice(kinds),
            link="developer-compliance",
            towards=chance.choice(("server", "client")),
            after=int(2 ** chance.uniform(0, 10)) - 1,
            seconds=chance.uniform(0.0, 0.3),
        )
        for _ in range(chance.randint(1, 3))
    ]


def ask_through_bad_links(call: Callable[[str], AuditClient], address: str, seeds: Sequence[int]) -> dict[str, Any]:
    """Ask one question for each seed, and again over a link that is sound; every answer that was heard, by request."""
    told: dict[str, set[bytes]] = {}
    happened: list[str] = []
    proxy = Proxy(address, lambda fault: happened.append(fault.kind))
    try:
        with call(proxy.address) as audits:
            for seed in seeds:
                request_id = f"request {seed}"
                proxy.arm(faults_of(seed))
                told[request_id] = {insist(audits, request_id)}
                proxy.arm(())
                told[request_id].add(insist(audits, request_id))
    finally:
        proxy.close()
    return {"told": told, "happened": happened}


def check_links(deployment: Deployment, seeds: range, threads: int) -> None:
    with deployment.served() as (address, process), ThreadPoolExecutor(threads) as pool:
        shares = [seeds[start::threads] for start in range(threads)]
        asked = [pool.submit(ask_through_bad_links, deployment.client, address, share) for share in shares]
        time.sleep(1)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        outcomes = [future.result(500) for future in asked]
    entries = deployment.entries()
    told = {request_id: answers for outcome in outcomes for request_id, answers in outcome["told"].items()}
    assert told == {name: {values_of(entry).tobytes()} for name, entry in entries.items()}
    assert len(told) == len(seeds)
    happened = [kind for outcome in outcomes for kind in outcome["happened"]]
    print(len(happened), "faults")  # noqa: T201
    assert len(happened) >= len(seeds)
    assert "Traceback" not in deployment.log


@pytest.mark.slow
def test_answers_through_bad_links_are_bought_once_and_never_drawn_again(deployment: Deployment) -> None:
    check_links(deployment, range(50), 5)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_thousand_answers_through_bad_links(deployment: Deployment) -> None:
    check_links(deployment, range(1000, 2000), 8)


# A service that breaks a promise, over the same links.


class Forgetful(Case):
    """It charges once, and draws for whoever comes."""

    def settle(self, developer: str, request_id: str, *asked: Any) -> Entry:
        super().settle(developer, request_id, *asked)
        fresh = f"{request_id} {random.random()}"  # noqa: S311
        return super().settle(developer, fresh, *asked)


class Generous(Case):
    """What it answers first is not charged."""

    def settle(self, developer: str, request_id: str, *asked: Any) -> Entry:
        other = open_case(Case)
        other.ledger.allocate("loans", developer, PLENTY)
        return other.settle(developer, request_id, *asked)


def open_case(kind: type[Case]) -> Case:
    records = Records(np.ones(PEOPLE, np.uint8), np.arange(PEOPLE, dtype=np.uint8) % 2, ("sp",))
    whole = game_case("loans", records, MECHANISMS["laplace"], Budget(PLENTY), 0.0, 1, None)
    return kind(**{name: getattr(whole, name) for name in whole.__dataclass_fields__})


@pytest.mark.parametrize("kind", [Forgetful, Generous])
def test_a_service_that_breaks_a_promise_is_found_out_over_a_bad_link(deployment: Deployment, kind: type[Case]) -> None:
    case = open_case(kind)
    own = identity.load(deployment.folder / "certificates" / "compliance")
    listening = server.serve(
        lambda grpc_server: add_AuditServiceServicer_to_server(AuditService({"loans": case}), grpc_server),
        own,
        admitted=[identity.Caller("loans", "developer", "alice")],
    )
    case.ledger.allocate("loans", "alice", PLENTY)
    try:
        told = ask_through_bad_links(deployment.client, listening.address, range(3))["told"]
    finally:
        listening.stop()
    charged = {entry.request.request_id for entry in case.ledger.entries("loans")}
    if kind is Forgetful:
        assert all(len(answers) > 1 for answers in told.values())
    else:
        assert not charged & told.keys()


# A server that says nothing, and one that is only held up -------------------------------------------------------------


class Slow(RefereeServiceServicer):
    def Join(self, request: game.JoinRequest, _: grpc.ServicerContext) -> game.JoinResponse:  # noqa: N802
        time.sleep(request.protocol_version)
        return game.JoinResponse()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seconds", "is_lost"), [("blackhole", None, True), ("truncate", None, True), ("blackhole", 8.0, False)]
)
def test_a_server_that_is_silent_is_lost_within_half_a_minute_and_one_that_is_held_up_is_not(
    kind: FaultKind, seconds: float | None, is_lost: bool
) -> None:
    credentials = mint("run-1")
    listening = server.serve(
        lambda grpc_server: add_RefereeServiceServicer_to_server(Slow(), grpc_server), credentials["referee"]
    )
    proxy = Proxy(listening.address)
    try:
        with channel.connect(proxy.address, "referee", credentials["developer"]) as opened:
            referee = RefereeServiceStub(opened)
            referee.Join(game.JoinRequest(), timeout=10)
            proxy.arm([Fault(trial=1, kind=kind, link="developer-referee", seconds=seconds)])
            began = time.monotonic()
            lost = pytest.raises(grpc.RpcError, match="UNAVAILABLE") if is_lost else nullcontext()
            with lost:
                referee.Join(game.JoinRequest(protocol_version=1), timeout=60)
            assert time.monotonic() - began < 30
    finally:
        proxy.close()
        listening.stop()


@pytest.mark.slow
def test_a_server_that_takes_its_time_does_not_mind_being_asked_whether_it_is_there() -> None:
    credentials = mint("run-1")
    listening = server.serve(
        lambda grpc_server: add_RefereeServiceServicer_to_server(Slow(), grpc_server), credentials["referee"]
    )
    with channel.connect(listening.address, "referee", credentials["developer"]) as opened:
        RefereeServiceStub(opened).Join(game.JoinRequest(protocol_version=35), timeout=60)
    listening.stop()


# The clock, and a disk that may only be read --------------------------------------------------------------------------

DAY = 86400.0


@pytest.fixture
def move_clock(deployment: Deployment) -> Callable[[float], None]:
    """Move the clock of the deployment's service, now and from its next start on."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no compiler here for a clock that can be moved")
    source, library, moved = (deployment.folder / name for name in ("clock.c", "clock.so", "clock"))
    source.write_text(CLOCK)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    moved.write_bytes(bytes(8))
    deployment.environment = {**os.environ, "LD_PRELOAD": str(library), "MOVED_CLOCK": str(moved)}

    def move(seconds: float) -> None:
        with moved.open("r+b") as file:
            file.write(int(seconds).to_bytes(8, "little", signed=True))

    return move


def test_a_clock_that_jumps_changes_no_budget_and_no_order(
    deployment: Deployment, move_clock: Callable[[float], None]
) -> None:
    answers: dict[str, bytes] = {}
    jumps = {"now": 0.0, "yesterday": -DAY, "next year": 365 * DAY, "1970": 1.0 - time.time(), "now again": 0.0}
    for start in ("first", "second"):
        with deployment.served() as (address, _), deployment.client(address) as audits:
            for jump, seconds in jumps.items():
                move_clock(seconds)
                answers[f"{jump} {start}"] = ask(audits, f"{jump} {start}")
                assert {earlier: ask(audits, earlier) for earlier in answers} == answers
                assert audits.terms().epsilon_remaining == PLENTY - CHARGE * len(answers)
                with deployment.client(address) as newcomer:
                    if seconds == 0.0:
                        assert ask(newcomer, f"now {start}") == answers[f"now {start}"]
                    else:  # whose certificate has expired, or does not hold yet, at this hour
                        with pytest.raises(AuditUnavailable):
                            ask(newcomer, f"{jump} {start}")
    entries = deployment.entries()
    assert list(entries) == list(answers), "in the order in which they were asked"
    assert {name: values_of(entry).tobytes() for name, entry in entries.items()} == answers
    times = [entry.time for entry in entries.values()]
    assert max(times) - min(times) > 365 * DAY, "the clock did jump"
    assert "Traceback" not in deployment.log


def test_a_service_that_starts_in_another_year_says_that_its_certificate_has_expired(
    deployment: Deployment, move_clock: Callable[[float], None]
) -> None:
    move_clock(365 * DAY)
    with (deployment.folder / "log").open("a") as log, deployment.start(log) as process:
        try:
            assert process.wait(60) == 2
        finally:
            process.kill()
    assert "expired" in deployment.log.splitlines()[-1]


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no right to mount a disk here: {done.stderr.strip()}")


@pytest.fixture(params=["ledger", "seal"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Mount a disk where a deployment keeps its ledger, or where it keeps the sealed head."""
    place = tmp_path / str(request.param)
    place.mkdir(mode=0o700)
    mount("-t", "tmpfs", "-o", "size=8m,mode=700", "none", str(place))
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


def test_a_disk_that_becomes_read_only_answers_nothing_new_and_loses_nothing(
    disk: Path, deployment: Deployment
) -> None:
    with deployment.served() as (address, _), deployment.client(address) as audits:
        answers = {name: ask(audits, name) for name in ("a", "b")}
        if disk.name == "seal":  # a disk on which files stand open is not made so: the ledger's, while it is served
            mount("-o", "remount,ro", str(disk))
            for _ in range(2):
                with pytest.raises(AuditRefused) as refused:
                    ask(audits, "c")
                assert refused.value.reason == "LEDGER_UNAVAILABLE"
            mount("-o", "remount,rw", str(disk))
            answers["c"] = ask(audits, "c")
            assert ask(audits, "a") == answers["a"]
    mount("-o", "remount,ro", str(disk))
    if disk.name == "ledger":  # started again, it can read what it sold
        with deployment.served() as (address, _), deployment.client(address) as audits:
            for _ in range(2):
                with pytest.raises(AuditRefused) as refused:
                    ask(audits, "c")
                assert refused.value.reason == "LEDGER_UNAVAILABLE"
            assert "readonly" in deployment.log
            assert {name: ask(audits, name) for name in answers} == answers
    assert "Traceback" not in deployment.log
    mount("-o", "remount,rw", str(disk))
    with deployment.served() as (address, _), deployment.client(address) as audits:
        assert {name: ask(audits, name) for name in answers} == answers
        assert audits.terms().epsilon_remaining == PLENTY - CHARGE * len(answers)
    assert {name: values_of(entry).tobytes() for name, entry in deployment.entries().items()} == answers


# The plan, and the proxy ----------------------------------------------------------------------------------------------


def scenario_with(faults: dict[str, Any]) -> Any:
    return plan({**tomllib.loads(scenario_of("plain", 2)), "faults": faults}, "test")


def test_a_plan_is_drawn_by_its_seed_for_each_trial_alone() -> None:
    def faults(seed: int, number: int) -> Any:
        drawn = scenario_with({"seed": seed, "per_trial": 3})
        return planned(drawn.cells[0].scenario, number)

    assert faults(1, 4) == faults(1, 4)
    assert len(faults(1, 4)) == 3
    assert faults(1, 4) != faults(1, 5)
    assert faults(1, 4) != faults(2, 4)
    kinds = {fault.kind for number in range(100) for fault in faults(1, number + 1)}
    assert kinds == {*LINK_KINDS, "kill", "pause"}


def test_a_scenario_without_faults_is_what_it_was() -> None:
    whole = plan(tomllib.loads(scenario_of("plain", 2)), "test")
    assert whole.scenario.faults is None
    assert planned(whole.scenario, 1) == ()
    assert scenario_with({}).digest != whole.digest


def test_every_key_and_kind_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs" / "faults.md").read_text()
    keys = [*FaultsSection.model_fields, *Fault.model_fields]
    for name in (*keys, *get_args(FaultKind), *get_args(LinkName), *get_args(StepName)):
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
    happened: list[Fault] = []
    with socket.create_server(("127.0.0.1", 0)) as door:
        proxy = Proxy(f"127.0.0.1:{door.getsockname()[1]}", happened.append)
        fault = Fault(trial=1, kind=kind, link="developer-referee", after=40, seconds=0.1)
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
