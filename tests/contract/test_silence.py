"""A call that sends nothing, or stops in the middle of an upload, is ended, gives its place back, and costs nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from typing import Any

import grpc
import numpy as np
import pytest

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import AuditCase, game_case
from compliance.answers.charging import DEVELOPER
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.records.people import Records
from fairwall.compliance.v1.audit_service_pb2 import AuditHeader, AuditRequest
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub, add_AuditServiceServicer_to_server
from fairwall.rpc import arrays, channel, server
from fairwall.rpc.errors import reason_of
from fairwall.rpc.fair_use import Quota
from fairwall.rpc.identity import Caller
from fairwall.rpc.server import CALLS_PER_CALLER, Deployed
from fairwall.wire.v1 import error_pb2 as error
from fairwall.wire.v1.metric_pb2 import METRIC_SP
from sim.play.keys import mint

OWN = mint("loans", ("compliance",), developers=(DEVELOPER,))
PREDICTIONS = np.linspace(0, 1, 60)[None, :]
SECONDS = 0.4
METHODS = ("/fairwall.compliance.v1.AuditService/GetTerms", "/grpc.health.v1.Health/Check")


@contextmanager
def deployed(silence_seconds: float = SECONDS) -> Iterator[tuple[AuditCase, grpc.Channel]]:
    """A service that waits so long for a message, and a developer's connection to it."""
    groups = np.arange(60, dtype=np.uint8) % 2
    records = Records(np.ones(60, np.uint8), groups, ("sp",))
    case = game_case("loans", records, MECHANISMS["laplace"], Budget(8.0), 0.0, 1, b"s" * 32)
    admitted = {Caller("loans", "developer", DEVELOPER): Quota()}
    listening = server.serve(
        lambda grpc_server: add_AuditServiceServicer_to_server(AuditService({"loans": case}), grpc_server),
        OWN["compliance"],
        deployed=Deployed(admitted, silence_seconds=silence_seconds),
    )
    with channel.connect(listening.address, "compliance", OWN[f"developer-{DEVELOPER}"]) as connection:
        yield case, connection
    listening.stop()


def messages() -> list[AuditRequest]:
    """A whole request, in three messages."""
    header = AuditHeader(
        request_id="once", deal_id="loans", metric=METRIC_SP, epsilon=0.5, predictions=arrays.header_of(PREDICTIONS)
    )
    data = PREDICTIONS.tobytes()
    parts = [AuditRequest(predictions_chunk=data[:80]), AuditRequest(predictions_chunk=data[80:])]
    return [AuditRequest(header=header), *parts]


def sent(count: int, over: Event, pause: float = 0.0) -> Iterator[bytes]:
    """Send the first messages of a request, each after a pause, and then neither more nor the end."""
    for message in messages()[:count]:
        time.sleep(pause)
        yield message.SerializeToString()
    over.wait(30)


def reason(call: Any) -> error.Reason:
    with pytest.raises(grpc.RpcError) as caught:
        call.result(timeout=30)
    return reason_of(caught.value)


def fall_silent(silence_seconds: float = SECONDS, deadline_seconds: float = 20.0) -> None:
    """Fill all of a caller's places with calls that fall silent, at every moment; then ask."""
    over = Event()
    with deployed(silence_seconds) as (case, connection):
        audit = connection.stream_unary("/fairwall.compliance.v1.AuditService/Audit")
        calls = [audit.future(sent(count, over), timeout=deadline_seconds) for count in range(len(messages()) + 1)]
        calls += [
            connection.stream_unary(method).future(sent(0, over), timeout=deadline_seconds) for method in METHODS * 2
        ]
        assert len(calls) == CALLS_PER_CALLER
        try:
            assert [reason(call) for call in calls] == [error.REASON_MESSAGE_LATE] * len(calls)
            assert case.ledger.standing("loans", DEVELOPER).spent == 0
            answer = AuditServiceStub(connection).Audit(iter(messages()), timeout=20)
            assert answer.epsilon_charged == case.ledger.standing("loans", DEVELOPER).spent == 0.5
        finally:
            over.set()


def test_a_call_that_falls_silent_is_refused_and_costs_nothing() -> None:
    fall_silent()


@pytest.mark.check
def test_a_service_that_waits_for_ever_is_found_out() -> None:
    with pytest.raises(AssertionError):
        fall_silent(silence_seconds=3600, deadline_seconds=2)


@pytest.mark.check
def test_a_service_that_waits_for_ever_between_messages_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    class FirstAlone(server._Prompt):
        def __next__(self) -> bytes:
            message = super().__next__()
            self._seconds = 3600
            return message

    monkeypatch.setattr(server, "_Prompt", FirstAlone)
    with pytest.raises(AssertionError):
        fall_silent(deadline_seconds=2)


@pytest.mark.check
def test_an_upload_may_take_longer_than_the_service_waits_for_a_message() -> None:
    over = Event()
    over.set()
    with deployed(silence_seconds=1.2) as (_, connection):
        audit = connection.stream_unary("/fairwall.compliance.v1.AuditService/Audit")
        assert audit(sent(3, over, pause=0.45), timeout=20)
