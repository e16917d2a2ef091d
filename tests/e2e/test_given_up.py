"""Calls that are given up: before their end nothing is charged, and after it no more than a repeat gets.

The service is a process of its own: within one, whoever gives up and whoever answers take turns, and are never seen to
race.
"""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import grpc
import pytest

from compliance.answers.audits import values_of
from fairwall.compliance.v1.audit_service_pb2 import AuditHeader, AuditRequest
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub
from fairwall.rpc import arrays, channel, identity
from fairwall.rpc.identity import Credentials
from fairwall.wire.v1.metric_pb2 import METRIC_SP
from tests.support.loans_deployment import CHARGE, PREDICTIONS, Deployment, ask

WAYS = ("cancel", "deadline", "connection")
MOMENTS = 0.03
"""Within so many seconds calls are given up; a whole one takes about a third of that."""


class Wire:
    """A connection to a server that can be cut."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._to = (host, int(port))
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        for end in (self._listening, *self._ends):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listening.accept()[0]
                service = socket.create_connection(self._to)
                self._ends += [client, service]
                for source, sink in ((client, service), (service, client)):
                    threading.Thread(target=self._pass_on, args=(source, sink), daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)


def sent(request_id: str, *, whole: bool, over: threading.Event) -> Iterator[AuditRequest]:
    """Every message of a request, and the end of the stream if it is to be whole."""
    predictions = PREDICTIONS[None, :]
    header = AuditHeader(
        request_id=request_id,
        deal_id="loans",
        metric=METRIC_SP,
        epsilon=CHARGE,
        predictions=arrays.header_of(predictions),
    )
    yield AuditRequest(header=header)
    yield from (AuditRequest(predictions_chunk=chunk) for chunk in arrays.chunks_of(predictions))
    if not whole:
        over.wait(20)


def give_up(deployment: Deployment, own: Credentials, way: str, times: int, *, whole: bool) -> list[str]:
    """Make calls one after the other, and give each up; the ids of their requests."""
    chance, names = random.Random(way), [f"{way} {number}" for number in range(times)]  # noqa: S311
    wire = Wire(deployment.address)
    connection = channel.connect(wire.address, "compliance", own)
    for name in names:
        with suppress(grpc.RpcError):  # so that the connection stands
            connection.unary_unary("/nothing")(b"", timeout=20)
        over, moment = threading.Event(), chance.uniform(0.0, MOMENTS)
        call = AuditServiceStub(connection).Audit.future(
            sent(name, whole=whole, over=over), timeout=moment if way == "deadline" else 20
        )
        if way != "deadline":
            time.sleep(moment)
        if way == "cancel":
            call.cancel()
        if way == "connection":
            wire.cut()
        with suppress(grpc.RpcError, grpc.FutureCancelledError):
            call.result(timeout=20)
        over.set()
        if way == "connection":
            connection.close()
            wire = Wire(deployment.address)
            connection = channel.connect(wire.address, "compliance", own)
    connection.close()
    wire.cut()
    time.sleep(0.2)  # for whatever the service was still at
    return names


BELIEVES_THE_FIRST_END = """
from compliance.__main__ import main
from fairwall.rpc import server
server._to_the_end = lambda arriving: arriving
main()
"""


def give_up_before_the_end(folder: Path, times: int, service: str = "") -> None:
    deployment = Deployment(folder)
    if service:
        deployment.service = ("-c", service)
    own = identity.load(folder / "certificates" / "developer-alice")
    with deployment.served():
        for way in WAYS:
            give_up(deployment, own, way, times, whole=False)
        assert deployment.entries().keys() == set()
        with deployment.client("alice") as audits:
            ask(audits, "whole")  # the service goes on
        assert "Traceback" not in deployment.log


def give_up_at_any_moment(folder: Path, times: int) -> int:
    deployment = Deployment(folder)
    own = identity.load(folder / "certificates" / "developer-alice")
    with deployment.served():
        names = [name for way in WAYS for name in give_up(deployment, own, way, times, whole=True)]
        charged = {name: values_of(entry).tobytes() for (_, name), entry in deployment.entries().items()}
        with deployment.client("alice") as audits:
            for name in names:
                answer = ask(audits, name)
                assert charged.get(name, answer) == answer
    assert {name for _, name in deployment.entries()} == set(names)
    return len(charged)


@pytest.mark.check
def test_a_call_given_up_before_its_stream_has_ended_costs_nothing(tmp_path: Path) -> None:
    give_up_before_the_end(tmp_path, 12)


@pytest.mark.check
def test_a_call_given_up_later_costs_no_more_than_its_repeat_gets(tmp_path: Path) -> None:
    give_up_at_any_moment(tmp_path, 6)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_501_calls_given_up_before_their_streams_have_ended_cost_nothing(tmp_path: Path) -> None:
    give_up_before_the_end(tmp_path, 167)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_service_that_takes_a_lost_stream_for_a_whole_one_is_found_out(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"dict_keys\(\[\("):
        give_up_before_the_end(tmp_path, 167, BELIEVES_THE_FIRST_END)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_501_calls_given_up_later_cost_no_more_than_their_repeats_get(tmp_path: Path) -> None:
    assert 0 < give_up_at_any_moment(tmp_path, 167) < 501
