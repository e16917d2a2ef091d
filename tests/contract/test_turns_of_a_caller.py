"""One caller's calls are worked on one at a time, and wait for each other no longer than they work."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import grpc
import pytest

from compliance.answers.audit_service import AuditService
from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub, add_AuditServiceServicer_to_server
from fairwall.rpc import channel, fair_use, server
from fairwall.rpc.errors import reason_of
from fairwall.rpc.fair_use import Quota
from fairwall.rpc.identity import Caller
from fairwall.rpc.server import CALLS_PER_CALLER, Deployed
from fairwall.wire.v1 import error_pb2
from sim.play.keys import mint

DEPLOYED = mint("loans", ("compliance",), developers=("alice", "bob"))
TERMS = audit.GetTermsRequest(deal_id="")


class Slow(AuditService):
    """Works for a moment on each call, and counts how many it works on at a time."""

    def __init__(self, *, waits: bool) -> None:
        super().__init__({})
        self.waits = waits
        self.lock = threading.Lock()
        self.now = self.most = 0

    def GetTerms(self, *_: object) -> audit.GetTermsResponse:  # noqa: N802 - gRPC's own name
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        with fair_use.waiting() if self.waits else contextlib.nullcontext():
            time.sleep(0.05)
        with self.lock:
            self.now -= 1
        return audit.GetTermsResponse()


@contextlib.contextmanager
def asked(*names: str, waits: bool = False) -> Iterator[int]:
    """Have every developer make as many calls at a time as it may; how many were worked on at once."""
    slow = Slow(waits=waits)
    admitted = {Caller("loans", "developer", name): Quota() for name in ("alice", "bob")}
    listening = server.serve(
        lambda each: add_AuditServiceServicer_to_server(slow, each), DEPLOYED["compliance"], deployed=Deployed(admitted)
    )
    with contextlib.ExitStack() as opened:
        opened.callback(listening.stop)
        stubs = [AuditServiceStub(opened.enter_context(_dialled(listening.address, name))) for name in names]
        with ThreadPoolExecutor(CALLS_PER_CALLER * len(names)) as threads:
            calls = [threads.submit(stub.GetTerms, TERMS, timeout=20) for stub in stubs * CALLS_PER_CALLER]
            for call in calls:
                call.result()
        yield slow.most


def _dialled(address: str, name: str) -> Any:
    return channel.connect(address, "compliance", DEPLOYED[f"developer-{name}"])


def test_of_one_callers_calls_one_is_worked_on() -> None:
    with asked("alice") as most:
        assert most == 1


def test_of_two_callers_one_call_each_is_worked_on() -> None:
    with asked("alice", "bob") as most:
        assert most == 2


def test_a_call_that_waits_leaves_its_callers_others_to_be_worked_on() -> None:
    with asked("alice", waits=True) as most:
        assert most > 1


def test_a_server_that_works_on_all_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_use, "working", lambda _: contextlib.nullcontext())
    with asked("alice") as most:
        assert most > 1


def test_a_call_whose_message_is_late_leaves_its_callers_others_to_be_worked_on() -> None:
    admitted = {Caller("loans", "developer", "alice"): Quota()}
    listening = server.serve(
        lambda each: add_AuditServiceServicer_to_server(AuditService({}), each),
        DEPLOYED["compliance"],
        deployed=Deployed(admitted),
    )
    over = threading.Event()

    def silent() -> Iterator[audit.AuditRequest]:
        over.wait(20)
        yield from ()

    with _dialled(listening.address, "alice") as connection:
        stub = AuditServiceStub(connection)
        held = [stub.Audit.future(silent(), timeout=30) for _ in range(CALLS_PER_CALLER - 1)]
        (place,) = listening._gate._places.values()
        while place.room._value > 1:  # they are under way
            time.sleep(0.01)
        with pytest.raises(grpc.RpcError) as refused:
            stub.GetTerms(TERMS, timeout=10)
        assert not any(call.done() for call in held)
        over.set()
        for call in held:
            call.cancel()
    listening.stop()
    assert reason_of(refused.value) == error_pb2.REASON_DEAL_UNKNOWN
