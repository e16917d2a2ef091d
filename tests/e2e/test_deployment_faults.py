"""Faults around a deployment whose client asks again by itself: bad links, clocks that jump, a disk only to be read."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import AuditCase, game_case, values_of
from compliance.ledger.accountant import Budget
from compliance.ledger.entries import LedgerEntry
from compliance.mechanisms import MECHANISMS
from compliance.records.people import Records
from fairwall.client import AuditClient, AuditRefused, AuditUnavailable
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1.referee_service_pb2_grpc import (
    RefereeServiceServicer,
    RefereeServiceStub,
    add_RefereeServiceServicer_to_server,
)
from fairwall.rpc import channel, identity, server
from fairwall.rpc.fair_use import Quota
from sim.play.faults import Proxy
from sim.play.keys import mint
from sim.scenarios.scenario import FaultKind, InjectedFault
from tests.support import small_disks
from tests.support.loans_deployment import CHARGE, PEOPLE, PLENTY, Deployment, ask, is_ready

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


@pytest.fixture
def deployment(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


def insist(audits: AuditClient, request_id: str) -> bytes:
    """Ask until there is an answer: an answer that was lost has been paid for."""
    for _ in range(20):
        with suppress(AuditUnavailable):
            return ask(audits, request_id)
        time.sleep(0.2)  # as long as a client stays away from an address at first
    raise AssertionError("no answer came")


LINK_KINDS = ("delay", "throttle", "blackhole", "drop", "duplicate", "truncate", "reorder", "half-close")


def faults_of(seed: int) -> list[InjectedFault]:
    """Up to three for one request, none of which lasts long."""
    chance = random.Random(seed)  # noqa: S311
    kinds = [kind for kind in LINK_KINDS if kind != "truncate" or seed % 10 == 9]  # which takes half a minute
    return [
        InjectedFault(
            trial=1,
            kind=chance.choice(kinds),
            link="developer-compliance",
            towards=chance.choice(("server", "client")),
            after=int(2 ** chance.uniform(0, 10)) - 1,
            seconds=chance.uniform(0.0, 0.3),
        )
        for _ in range(chance.randint(1, 3))
    ]


def ask_through_bad_links(deployment: Deployment, address: str, seeds: Sequence[int]) -> dict[str, Any]:
    """Ask one question for each seed, and again over a link that is sound; every answer that was heard, by request."""
    told: dict[str, set[bytes]] = {}
    happened: list[str] = []
    proxy = Proxy(address, lambda fault: happened.append(fault.kind))
    try:
        with deployment.client("alice", proxy.address) as audits:
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
    with deployment.served() as process, ThreadPoolExecutor(threads) as pool:
        shares = [seeds[start::threads] for start in range(threads)]
        asked = [pool.submit(ask_through_bad_links, deployment, deployment.address, share) for share in shares]
        time.sleep(1)
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        outcomes = [future.result(500) for future in asked]
    entries = deployment.entries()
    told = {request_id: answers for outcome in outcomes for request_id, answers in outcome["told"].items()}
    assert told == {name: {values_of(entry).tobytes()} for (_, name), entry in entries.items()}
    assert len(told) == len(seeds)
    happened = [kind for outcome in outcomes for kind in outcome["happened"]]
    print(len(happened), "faults")  # noqa: T201
    assert len(happened) >= len(seeds)
    assert "Traceback" not in deployment.log


@pytest.mark.slow
def test_200_answers_through_bad_links_are_bought_once_and_never_drawn_again(deployment: Deployment) -> None:
    check_links(deployment, range(1000, 1200), 8)


# A service that breaks a promise, over the same links.


class Forgetful(AuditCase):
    """It charges once, and draws for whoever comes."""

    def answer(self, developer: str, request_id: str, *asked: Any) -> LedgerEntry:
        super().answer(developer, request_id, *asked)
        fresh = f"{request_id} {random.random()}"  # noqa: S311
        return super().answer(developer, fresh, *asked)


class Generous(AuditCase):
    """What it answers first is not charged."""

    def answer(self, developer: str, request_id: str, *asked: Any) -> LedgerEntry:
        other = open_case(AuditCase)
        other.ledger.allocate("loans", developer, PLENTY)
        return other.answer(developer, request_id, *asked)


def open_case(kind: type[AuditCase]) -> AuditCase:
    records = Records(np.ones(PEOPLE, np.uint8), np.arange(PEOPLE, dtype=np.uint8) % 2, ("sp",))
    whole = game_case("loans", records, MECHANISMS["laplace"], Budget(PLENTY), 0.0, 1, None)
    return kind(**{name: getattr(whole, name) for name in whole.__dataclass_fields__})


@pytest.mark.few(1)
@pytest.mark.parametrize("kind", [Forgetful, Generous])
def test_a_service_that_breaks_a_promise_is_found_out_over_a_bad_link(
    deployment: Deployment, kind: type[AuditCase]
) -> None:
    case = open_case(kind)
    own = identity.load(deployment.folder / "certificates" / "compliance")
    listening = server.serve(
        lambda grpc_server: add_AuditServiceServicer_to_server(AuditService({"loans": case}), grpc_server),
        own,
        deployed=server.Deployed({identity.Caller("loans", "developer", "alice"): Quota()}),
    )
    case.ledger.allocate("loans", "alice", PLENTY)
    try:
        told = ask_through_bad_links(deployment, listening.address, range(3))["told"]
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
            referee.Join(game.JoinRequest(), timeout=300)
            proxy.arm([InjectedFault(trial=1, kind=kind, link="developer-referee", seconds=seconds)])
            began = time.monotonic()
            lost = pytest.raises(grpc.RpcError, match="UNAVAILABLE") if is_lost else nullcontext()
            with lost:
                referee.Join(game.JoinRequest(protocol_version=1), timeout=300)
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
        RefereeServiceStub(opened).Join(game.JoinRequest(protocol_version=35), timeout=300)
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


@pytest.mark.check
def test_a_clock_that_jumps_changes_no_budget_and_no_order(
    deployment: Deployment, move_clock: Callable[[float], None]
) -> None:
    answers: dict[str, bytes] = {}
    jumps = {"now": 0.0, "yesterday": -DAY, "next year": 365 * DAY, "1970": 1.0 - time.time(), "now again": 0.0}
    for start in ("first", "second"):
        with deployment.served(), deployment.client("alice") as audits:
            for jump, seconds in jumps.items():
                move_clock(seconds)
                if jump == "next year":  # a connection does not outlive its certificate
                    with pytest.raises(AuditRefused) as refused:
                        ask(audits, jump)
                    assert refused.value.reason == "CALLER_UNKNOWN"
                    continue
                answers[f"{jump} {start}"] = ask(audits, f"{jump} {start}")
                assert {earlier: ask(audits, earlier) for earlier in answers} == answers
                assert audits.terms().epsilon_remaining == PLENTY - CHARGE * len(answers)
                with deployment.client("alice") as newcomer:
                    if seconds == 0.0:
                        assert ask(newcomer, f"now {start}") == answers[f"now {start}"]
                    else:  # whose certificate has expired, or does not hold yet, at this hour
                        with pytest.raises(AuditUnavailable):
                            ask(newcomer, f"{jump} {start}")
    entries = deployment.entries()
    assert [name for _, name in entries] == [*answers], "in the order in which they were asked"
    assert {name: values_of(entry).tobytes() for (_, name), entry in entries.items()} == answers
    times = [entry.time for entry in entries.values()]
    assert max(times) - min(times) > 365 * DAY, "the clock did jump"
    assert "Traceback" not in deployment.log


def test_a_service_that_starts_in_another_year_says_that_its_certificate_has_expired(
    deployment: Deployment, move_clock: Callable[[float], None]
) -> None:
    move_clock(365 * DAY)
    with deployment.started() as process:
        assert process.wait(300) == 2
    assert "expired" in deployment.log.splitlines()[-1]


def mount(*arguments: str) -> None:
    done = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no right to mount a disk here: {done.stderr.strip()}")


@pytest.fixture(params=["ledger", "seal"])
def disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Mount a disk where a deployment keeps its ledger, or where it keeps the sealed head."""
    with small_disks.small_disk(tmp_path / str(request.param), "8m") as disk:
        yield disk


def assert_soon(what: Callable[[], bool]) -> None:
    for _ in range(100):
        if what():
            return
        time.sleep(0.1)
    raise AssertionError("not within ten seconds")


@pytest.mark.check
def test_a_disk_that_becomes_read_only_answers_nothing_new_and_loses_nothing(
    disk: Path, deployment: Deployment
) -> None:
    with deployment.served(), deployment.client("alice") as audits:
        answers = {name: ask(audits, name) for name in ("a", "b")}
        if disk.name == "seal":  # a disk on which files stand open is not made so: the ledger's, while it is served
            assert is_ready(deployment)
            mount("-o", "remount,ro", str(disk))
            for _ in range(2):
                with pytest.raises(AuditRefused) as refused:
                    ask(audits, "c")
                assert refused.value.reason == "LEDGER_UNAVAILABLE"
            assert_soon(lambda: not is_ready(deployment))
            mount("-o", "remount,rw", str(disk))
            assert_soon(lambda: is_ready(deployment))
            answers["c"] = ask(audits, "c")
            assert ask(audits, "a") == answers["a"]
    mount("-o", "remount,ro", str(disk))
    if disk.name == "ledger":  # started again after it was killed, it can read what it sold
        with deployment.served(), deployment.client("alice") as audits:
            for _ in range(2):
                with pytest.raises(AuditRefused) as refused:
                    ask(audits, "c")
                assert refused.value.reason == "LEDGER_UNAVAILABLE"
            assert "readonly" in deployment.log
            assert {name: ask(audits, name) for name in answers} == answers
    assert "Traceback" not in deployment.log
    mount("-o", "remount,rw", str(disk))
    with deployment.served() as process, deployment.client("alice") as audits:
        assert {name: ask(audits, name) for name in answers} == answers
        assert audits.terms().epsilon_remaining == PLENTY - CHARGE * len(answers)
        process.terminate()
        assert process.wait(300) == 0
    if disk.name == "ledger":  # and after a clean end it cannot: SQLite would have to make the files of its log
        mount("-o", "remount,ro", str(disk))
        with deployment.started() as process:
            assert process.wait(300) == 2
        assert "ledger.sqlite" in deployment.log.splitlines()[-1]
        assert "Traceback" not in deployment.log
        mount("-o", "remount,rw", str(disk))
    assert {name: values_of(entry).tobytes() for (_, name), entry in deployment.entries().items()} == answers
