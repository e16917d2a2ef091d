"""The service itself, killed under load, on a full disk, and refusing: what developers hear is what the ledger says."""

from __future__ import annotations

import itertools
import math
import random
import subprocess
import threading
import time
from bisect import bisect
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import AuditCase, game_case, values_of
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.records.people import Records
from fairwall.client import AuditClient, AuditRefused, AuditUnavailable
from fairwall.compliance.v1.audit_service_pb2 import AuditHeader, AuditRequest
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub, add_AuditServiceServicer_to_server
from fairwall.rpc import arrays, channel, server
from fairwall.rpc.errors import reason_of
from fairwall.wire.metrics import number_of
from fairwall.wire.v1.error_pb2 import Reason
from sim.play.keys import mint
from tests.support import small_disks
from tests.support.loans_deployment import CHARGE, DEVELOPERS, PLENTY, Deployment, ask, is_ready

LAST = 40


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(AuditRefused) as caught:
        call()
    return caught.value.reason


# Killed under load ----------------------------------------------------------------------------------------------------


@dataclass
class Client:
    """One of a developer's programs: it asks on until the budget is used up, whatever happens to the service.

    A patient one keeps its connection, and what is lost is asked again by `AuditClient` itself. Any other connects anew
    for each request; what is lost it asks again, or gives up for good. Nobody asks while the service is not up.
    """

    deployment: Deployment
    developer: str
    patient: bool
    chance: random.Random
    up: threading.Event
    over: threading.Event
    heard: threading.Event
    answers: dict[str, bytes] = field(default_factory=dict)
    first_heard: dict[str, float] = field(default_factory=dict)
    given_up: list[str] = field(default_factory=list)
    refusals: list[tuple[str, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    repeats: int = 0
    asked: int = 0

    def run(self) -> None:
        with ExitStack() as opened, suppress(AuditRefused):
            kept = opened.enter_context(self.deployment.client(self.developer)) if self.patient else None
            while not self.over.is_set():
                self.asked += 1
                self.insist(f"{'patient' if self.patient else 'brief'} {self.asked}", kept)
                if self.answers and self.chance.random() < 0.1:  # an old question again
                    self.insist(self.chance.choice(list(self.answers)), kept)

    def insist(self, request_id: str, kept: AuditClient | None) -> None:
        """Ask until there is an answer."""
        while not self.over.is_set():
            assert self.up.wait(300)
            try:
                self.hear(request_id, self.ask(request_id, kept))
                return
            except AuditUnavailable:
                if not self.patient and request_id not in self.answers and self.chance.random() < 0.5:
                    self.given_up.append(request_id)
                    return

    def ask(self, request_id: str, kept: AuditClient | None) -> bytes:
        try:
            if kept is not None:
                return ask(kept, request_id)
            with self.deployment.client(self.developer) as audits:
                return ask(audits, request_id)
        except AuditRefused as refused:
            self.refusals.append((refused.reason, request_id))
            raise

    def hear(self, request_id: str, answer: bytes) -> None:
        self.repeats += request_id in self.answers
        self.first_heard.setdefault(request_id, time.time())
        if self.answers.setdefault(request_id, answer) != answer:
            self.faults.append(f"{self.developer} was told two answers to {request_id}")
        self.heard.set()


def kill_under_load(folder: Path, kills: int, seed: int) -> dict[str, float]:
    """Kill the service at random moments; compare all that its clients heard with all that its ledger says.

    Returns
    -------
    dict
        Figures: among them how many answers were charged for before a kill and heard after it.
    """
    began = time.monotonic()
    deployment = Deployment(folder)
    up, over, heard = threading.Event(), threading.Event(), threading.Event()
    chance = random.Random(seed)  # noqa: S311
    clients = [
        Client(deployment, developer, patient, random.Random(f"{seed}{developer}{patient}"), up, over, heard)  # noqa: S311
        for developer, patient in itertools.product(DEVELOPERS, (True, False))
    ]
    killed = []

    @contextmanager
    def served() -> Iterator[subprocess.Popen[str]]:
        with deployment.served() as process:
            up.set()
            try:
                yield process
            finally:
                up.clear()

    with ThreadPoolExecutor(len(clients)) as threads:
        try:
            running = [threads.submit(client.run) for client in clients]
            for kill in range(kills):
                if kill % 5 == 4:  # one more dies while it starts, or makes good what the one before left
                    with deployment.started() as process, suppress(subprocess.TimeoutExpired):
                        process.wait(chance.uniform(0.0, 1.0))
                with served() as process:
                    heard.clear()
                    assert heard.wait(300)
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(chance.uniform(0.0, 0.4))
                    assert process.poll() is None, deployment.log[-500:]
                    killed.append(time.time())
            budget = CHARGE * (len(deployment.entries()) + LAST)
            deployment.set_budget(budget)
            with served():
                for client in running:
                    client.result(90)  # its budget is used up
                check_repeats(deployment, clients)
        finally:
            over.set()
            up.set()
    entries = deployment.entries()
    assert CHARGE * len(entries) == budget
    assert {developer for developer, _ in entries} == set(DEVELOPERS)

    answers = {(client.developer, name): answer for client in clients for name, answer in client.answers.items()}
    given_up = {(client.developer, name) for client in clients for name in client.given_up}
    assert {who: values_of(entries[who]).tobytes() for who in answers} == answers
    assert answers.keys() | (given_up & entries.keys()) == entries.keys()
    assert len(set(answers.values())) > 0.9 * len(answers), "each draw is its own"
    times = {(client.developer, name): at for client in clients for name, at in client.first_heard.items()}
    return {
        "kills": kills,
        "answers": len(answers),
        "repeats": sum(client.repeats for client in clients),
        "charged before a kill, heard after": sum(
            bisect(killed, entries[who].time) < bisect(killed, at) for who, at in times.items()
        ),
        "charged, given up": len(given_up & entries.keys()),
        "not charged, given up": len(given_up - entries.keys()),
        "seconds": round(time.monotonic() - began, 1),
    }


def check_repeats(deployment: Deployment, clients: list[Client]) -> None:
    """With nothing left, what was charged is answered again and again alike, and what was not is refused."""
    entries = deployment.entries()
    for client in clients:
        assert client.faults == []
        assert [reason for reason, name in client.refusals if name not in client.answers] == ["BUDGET_EXHAUSTED"]
        assert len(client.refusals) == 1
        with deployment.client(client.developer) as audits:
            for request_id in [
                *client.given_up,
                *client.chance.sample(sorted(client.answers), min(5, len(client.answers))),
            ]:
                if entry := entries.get((client.developer, request_id)):
                    assert {ask(audits, request_id) for _ in range(2)} == {values_of(entry).tobytes()}
                else:
                    assert refusal(lambda: ask(audits, request_id)) == "BUDGET_EXHAUSTED"  # noqa: B023
            assert audits.terms().epsilon_remaining == 0.0
            assert refusal(lambda: ask(audits, "one more")) == "BUDGET_EXHAUSTED"


@pytest.mark.check
def test_the_service_killed_5_times_loses_no_charge_and_answers_nothing_twice(tmp_path: Path) -> None:
    figures = kill_under_load(tmp_path, kills=5, seed=1)
    print(figures)  # noqa: T201
    assert figures["answers"] > 5


@pytest.mark.slow(seconds=100)
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [2, 3])
def test_the_service_killed_50_times_loses_no_charge_and_answers_nothing_twice(tmp_path: Path, seed: int) -> None:
    figures = kill_under_load(tmp_path, kills=50, seed=seed)
    print(figures)  # noqa: T201
    assert figures["charged, given up"] > 0


# On a full disk -------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["ledger", "seal"])
def small_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """Mount a disk of one mebibyte where a deployment keeps its ledger, or where it keeps the sealed head."""
    with small_disks.small_disk(tmp_path / str(request.param)) as disk:
        yield disk


@pytest.mark.check
def test_a_full_disk_under_the_service_loses_nothing_and_under_its_ledger_refuses_and_says_why(
    tmp_path: Path, small_disk: Path
) -> None:
    deployment = Deployment(tmp_path)
    with deployment.client("alice") as audits:
        with deployment.served():
            answers = {name: ask(audits, name) for name in ("a", "b")}
            ballast = small_disk / "ballast"
            with suppress(OSError), ballast.open("wb") as file:
                file.write(bytes(2 << 20))
            if small_disk.name == "seal":  # the head takes no more of its disk than it has
                assert is_ready(deployment)
            else:
                for _ in range(2):
                    assert refusal(lambda: ask(audits, "c")) == "LEDGER_UNAVAILABLE"
                assert not is_ready(deployment)
                assert "disk is full" in deployment.log
                ballast.unlink()
            assert "Traceback" not in deployment.log
            answers["c"] = ask(audits, "c")
            assert ask(audits, "a") == answers["a"]
        with deployment.served():
            assert {name: ask(audits, name) for name in answers} == answers
            assert audits.terms().epsilon_remaining == PLENTY - 3 * CHARGE
    assert {name: values_of(entry).tobytes() for (_, name), entry in deployment.entries().items()} == answers


# The same refusal for every A -----------------------------------------------------------------------------------------

WORLDS = [world for world in itertools.product((0, 1), repeat=4) if 0 < sum(world) < 4]
GUARANTEED = [name for name, mechanism in MECHANISMS.items() if mechanism.guarantee != "none"]
ONCE = {"cells", "randomized-response"}
"""They are paid for once. So is `recommended` where it chooses one of these; not at so small an epsilon."""


def parts(predictions: Any = (0, 1, 0, 1), metric: str = "sp", epsilon: float = 0.5, name: str = "r") -> Any:
    values = np.atleast_2d(np.asarray(predictions, dtype=np.float64))
    header = AuditHeader(
        request_id=name,
        deal_id="deal",
        metric=number_of(metric),
        epsilon=epsilon,
        predictions=arrays.header_of(values),
    )
    return [AuditRequest(header=header), *(AuditRequest(predictions_chunk=part) for part in arrays.chunks_of(values))]


REFUSED: dict[str, tuple[Any, str]] = {
    "too few people": (parts((0, 1, 0)), "PREDICTIONS_SHAPE"),
    "too many models": (parts(np.zeros((3, 4))), "QUERIES_OUT_OF_RANGE"),
    "a NaN": (parts((0, math.nan, 0, 1)), "PREDICTIONS_NOT_FINITE"),
    "above 1": (parts((0, 2, 0, 1)), "PREDICTIONS_OUT_OF_RANGE"),
    "a metric that is not allowed": (parts(metric="abs_sp"), "METRIC_NOT_ALLOWED"),
    "epsilon 0": (parts(epsilon=0.0), "EPSILON_INVALID"),
    "epsilon NaN": (parts(epsilon=math.nan), "EPSILON_INVALID"),
    "more than the budget": (parts(epsilon=0.75), "BUDGET_EXHAUSTED"),
}


@pytest.fixture(scope="module")
def cases() -> dict[str, AuditCase]:
    return {}


@pytest.fixture(scope="module")
def audits(cases: dict[str, AuditCase]) -> Iterator[AuditServiceStub]:
    """A real connection to a server that answers from ``cases``."""
    credentials = mint("run-1")
    listening = server.serve(
        lambda grpc_server: add_AuditServiceServicer_to_server(AuditService(cases), grpc_server),
        credentials["compliance"],
    )
    with channel.connect(listening.address, "compliance", credentials["developer"]) as opened:
        yield AuditServiceStub(opened)
    listening.stop()


def open_case(mechanism: str, world: tuple[int, ...], delta: float = 1e-6) -> AuditCase:
    """Four people, of whom the service knows nothing but A; a budget for one batch."""
    records = Records(np.ones(4, np.uint8), np.array(world, np.uint8), ("sp", "eo"))
    return game_case("deal", records, MECHANISMS[mechanism], Budget(0.5, 1e-6), delta, 2, None)


def refused(audits: AuditServiceStub, asked: Any) -> tuple[Any, ...]:
    """Everything that a refused caller gets to see."""
    with pytest.raises(grpc.RpcError) as caught:
        audits.Audit(iter(asked), timeout=300)
    seen: Any = caught.value
    return Reason.Name(reason_of(seen)), seen.code(), seen.details(), tuple(seen.trailing_metadata())


@pytest.mark.few(2)
@pytest.mark.parametrize("mechanism", GUARANTEED)
def test_a_refusal_is_the_same_for_every_A(  # noqa: N802
    cases: dict[str, AuditCase], audits: AuditServiceStub, mechanism: str
) -> None:
    assert len(WORLDS) == 14
    for what, (asked, reason) in REFUSED.items():
        seen = set()
        for world in WORLDS:
            cases["deal"] = open_case(mechanism, world)
            seen.add(refused(audits, asked))
            assert cases["deal"].ledger.entries("deal") == (), what
        assert [reason for reason, *_ in seen] == [f"REASON_{reason}"], what


@pytest.mark.few(2)
@pytest.mark.parametrize("mechanism", GUARANTEED)
def test_nobody_is_refused_within_the_budget_and_everybody_beyond_whatever_A(  # noqa: N802
    cases: dict[str, AuditCase], audits: AuditServiceStub, mechanism: str
) -> None:
    seen = set()
    for world in WORLDS:
        cases["deal"] = open_case(mechanism, world)
        audits.Audit(iter(parts()), timeout=300)  # the first choice of `recommended` is simulated
        if mechanism in ONCE:
            audits.Audit(iter(parts(name="again")), timeout=300)
        else:
            seen.add(refused(audits, parts(name="again")))
    assert {reason for reason, *_ in seen} <= {"REASON_BUDGET_EXHAUSTED"}
    assert len(seen) == (mechanism not in ONCE)


@pytest.mark.parametrize("mechanism", [name for name in GUARANTEED if MECHANISMS[name].refuses("sp", 0.5, 0.0)])
def test_a_mechanism_without_its_delta_refuses_the_same_for_every_A(  # noqa: N802
    cases: dict[str, AuditCase], audits: AuditServiceStub, mechanism: str
) -> None:
    seen = set()
    for world in WORLDS:
        cases["deal"] = open_case(mechanism, world, delta=0.0)
        seen.add(refused(audits, parts()))
    assert [reason for reason, *_ in seen] == ["REASON_MECHANISM_REFUSES"]
