"""Whoever floods a deployed service, others get their answers; benchmarks/flood.py measures how long they wait."""

from __future__ import annotations

import resource
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from fairwall.client import AuditRefused
from fairwall.rpc import channel, identity
from tests.support.loans_deployment import Deployment, ask

METHODS = ("/fairwall.compliance.v1.AuditService/GetTerms", "/grpc.health.v1.Health/Check")


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path)
    with deployment.served():
        yield deployment


def ask_many(deployment: Deployment, developer: str, times: int) -> None:
    with deployment.client(developer) as audits:
        for number in range(times):
            ask(audits, f"{developer} {number}")


@pytest.mark.check
def test_calls_that_send_no_message_keep_nobody_waiting(deployment: Deployment) -> None:
    over = threading.Event()

    def nothing() -> Iterator[bytes]:
        over.wait(60)
        yield from ()

    own = identity.load(deployment.folder / "certificates" / "developer-alice")
    with channel.connect(deployment.address, "compliance", own) as connection:
        calls = [connection.stream_unary(method).future(nothing(), timeout=60) for method in METHODS for _ in range(40)]
        ask_many(deployment, "bob", 5)
        over.set()
        for call in calls:
            call.cancel()


@pytest.mark.check
def test_a_developer_that_asks_all_the_time_keeps_no_other_waiting(deployment: Deployment) -> None:
    over = threading.Event()

    def flood(number: int) -> int:
        asked = 0
        with deployment.client("alice") as audits, suppress(AuditRefused):
            while not over.is_set():
                ask(audits, f"{number} {asked}")
                asked += 1
        return asked

    with ThreadPoolExecutor(8) as threads:
        flooding = [threads.submit(flood, number) for number in range(8)]
        ask_many(deployment, "bob", 10)
        over.set()
        assert sum(each.result() for each in flooding) > 10
    assert {developer for developer, _ in deployment.entries()} == {"alice", "bob"}


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_1500_connections_that_say_nothing_keep_nobody_waiting(deployment: Deployment) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    own = deployment.folder / "certificates" / "developer-alice"
    context = ssl.create_default_context(cafile=own / "authority.pem")
    context.load_cert_chain(own / "certificate.pem", own / "key.pem")
    context.set_alpn_protocols(["h2"])
    host, port = deployment.address.rsplit(":", 1)
    held = []
    try:
        for _ in range(1500):
            plain = socket.create_connection((host, int(port)), timeout=20)
            held.append(context.wrap_socket(plain, server_hostname="compliance.loans.fairwall"))
        ask_many(deployment, "bob", 5)
    finally:
        for connection in held:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
