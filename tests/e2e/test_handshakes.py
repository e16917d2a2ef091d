"""Who does not get past the handshake is in the log of a deployment: when, from where, and why, one line each."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import psutil
import pytest

from fairwall.rpc import handshakes
from fairwall.rpc.identity import Credentials
from sim.play.keys import mint
from tests.support.loans_deployment import Deployment, ask

PATIENCE_SECONDS = 300.0


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    deployment = Deployment(tmp_path_factory.mktemp("loans"))
    deployment.popen = subprocess.Popen
    expired = mint("expired", (), developers=("alice",), valid=timedelta(seconds=-60))["developer-alice"]
    keep(deployment.folder / "certificates" / "expired", expired)
    with (deployment.folder / "certificates" / "compliance" / "authority.pem").open("a") as trusted:
        trusted.write(expired.authority)
    with deployment.served():
        yield deployment


def keep(folder: Path, own: Credentials) -> None:
    folder.mkdir()
    for name in ("authority", "certificate", "key"):
        (folder / f"{name}.pem").write_text(getattr(own, name))


def failures(deployment: Deployment) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in deployment.log.splitlines() if line.startswith("{")]
    return [line for line in lines if line["outcome"] == "handshake failed"]


def until(found: Callable[[], Any]) -> Any:
    """Wait for what another process does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (value := found()):
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
    return value


def connect(deployment: Deployment) -> socket.socket:
    host, port = deployment.address.rsplit(":", 1)
    return socket.create_connection((host, int(port)), timeout=300)


def shake(
    deployment: Deployment, connection: socket.socket, own: Path | None, protocols: tuple[str, ...] = ("h2",)
) -> None:
    """Do a client's part of the handshake, with a folder's certificate or none."""
    context = ssl.create_default_context(cafile=deployment.folder / "certificates" / "compliance" / "authority.pem")
    if own is not None:
        context.load_cert_chain(own / "certificate.pem", own / "key.pem")
    if protocols:
        context.set_alpn_protocols([*protocols])
    try:
        with context.wrap_socket(connection, server_hostname="compliance.loans.fairwall") as wrapped:
            wrapped.recv(1)
    except OSError:
        pass


def stranger(folder: Path, deployment: str) -> Path:
    """A certificate of another authority, which calls itself as ours does if it is for the same deployment."""
    keep(folder / deployment, mint(deployment, (), developers=("alice",))["developer-alice"])
    return folder / deployment


@pytest.mark.check
def test_a_failure_has_a_line_with_time_address_and_reason(deployment: Deployment, tmp_path: Path) -> None:
    alice = deployment.folder / "certificates" / "developer-alice"
    ways: dict[str, tuple[Callable[[socket.socket], object], str]] = {
        "no certificate": (lambda connection: shake(deployment, connection, None), "NO_CERTIFICATE"),
        "a stranger": (
            lambda connection: shake(deployment, connection, stranger(tmp_path, "loans")),
            "CERTIFICATE_NOT_TRUSTED",
        ),
        "one whose certificate has expired": (
            lambda connection: shake(deployment, connection, deployment.folder / "certificates" / "expired"),
            "CERTIFICATE_EXPIRED",
        ),
        "a stranger of another deployment": (
            lambda connection: shake(deployment, connection, stranger(tmp_path, "other")),
            "CERTIFICATE_NOT_TRUSTED",
        ),
        "plain text": (lambda connection: connection.sendall(b"GET / HTTP/1.1\r\n\r\n"), "NOT_TLS"),
        "no HTTP/2": (lambda connection: shake(deployment, connection, alice, ()), "NOT_HTTP2"),
        "nothing": (lambda _: None, "CLOSED"),
    }
    for what, (way, reason) in ways.items():
        before = len(failures(deployment))
        with connect(deployment) as connection:
            peer = "{}:{}".format(*connection.getsockname())
            way(connection)
        line = until(lambda before=before: failures(deployment)[before:])[0]  # type: ignore[misc]
        assert {**line, "time": ""} == {"time": "", "outcome": "handshake failed", "peer": peer, "reason": reason}, what
        time.sleep(0.2)  # so few in a second that each has a line of its own


def test_a_client_that_does_not_trust_the_service_is_in_the_log(deployment: Deployment, tmp_path: Path) -> None:
    before = len(failures(deployment))
    context = ssl.create_default_context(cafile=stranger(tmp_path, "other") / "authority.pem")
    with connect(deployment) as connection, pytest.raises(ssl.SSLError):
        context.wrap_socket(connection, server_hostname="compliance.loans.fairwall")
    assert until(lambda: failures(deployment)[before:])[0]["reason"] == "SERVER_NOT_TRUSTED"


def test_whoever_gets_past_the_handshake_is_not(deployment: Deployment) -> None:
    before = len(failures(deployment))
    with deployment.client("alice") as audits:
        ask(audits, "one")
    with connect(deployment):
        pass
    found = until(lambda: failures(deployment)[before:])
    assert [line["reason"] for line in found] == ["CLOSED"]


def test_nothing_of_the_core_is_in_the_log(deployment: Deployment) -> None:
    assert not re.search(r"(?m)^[IWE]\d{4} |^ shutdown=|Source Location|^\n", deployment.log)


def test_a_flood_has_a_few_lines_a_second_and_none_is_forgotten(deployment: Deployment) -> None:
    def counted() -> int:
        return sum(line.get("more", 1) for line in failures(deployment)[before:])

    before, began = len(failures(deployment)), time.monotonic()
    for _ in range(300):
        connect(deployment).close()
    until(lambda: counted() == 300)
    seconds = time.monotonic() - began + 2
    assert len(failures(deployment)) - before <= seconds * (handshakes.LINES_PER_SECOND + 1)


CRASHES = """
import os, sys
from compliance.__main__ import main
from fairwall.rpc import process
def announce(*_):
    os.write(2, b"core: the last words" + b" and more" * 9000)
    os.abort()
process.announce = announce
main()
"""


@pytest.mark.check
def test_what_a_service_says_when_it_crashes_is_not_lost(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    deployment.popen = subprocess.Popen
    deployment.service = ("-c", CRASHES)
    with deployment.started() as process:
        assert process.wait(PATIENCE_SECONDS) == -signal.SIGABRT
        until(lambda: deployment.log.endswith("and more\n"))
    assert "core: the last words and more" in deployment.log


@pytest.mark.check
@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_process_that_writes_the_lines_leaves_last(tmp_path: Path, signum: signal.Signals) -> None:
    deployment = Deployment(tmp_path)
    deployment.popen = subprocess.Popen
    with deployment.served() as process:
        (child,) = psutil.Process(process.pid).children()
        child.send_signal(signum)  # as systemd and terminals do, to all there are
        connect(deployment).close()
        assert [line["reason"] for line in until(lambda: failures(deployment))] == ["CLOSED"]
        process.send_signal(signum)
        assert process.wait(PATIENCE_SECONDS) == 0
        assert not child.is_running()


@pytest.mark.check
def test_an_operator_who_wants_the_core_s_own_lines_gets_them(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    deployment.popen = subprocess.Popen
    deployment.environment = {**os.environ, "GRPC_TRACE": "handshaker", "GRPC_VERBOSITY": "DEBUG"}
    with deployment.served() as process:
        connect(deployment).close()
        until(lambda: "CallNextHandshakerLocked" in deployment.log)
        assert psutil.Process(process.pid).children() == []
    assert "failed handshakes are not in the log" in deployment.log


def test_the_lines_are_read_however_they_arrive() -> None:
    args = "args={endpoint=0x1, args={grpc.internal.endpoint_peer_address=ipv6:%5B::1%5D:3333, more=1}}"
    text = (
        "Fatal Python error: one\n"
        f"I1122 15:36:05.5 24465 handshaker.cc:155] CallNextHandshakerLocked: error=OK shutdown=false index=1, {args}\n"
        "I1122 15:36:05.5 24465 handshaker.cc:155] CallNextHandshakerLocked: error=UNKNOWN: SSL_ERROR_SSL: "
        "PEER_DID_NOT_RETURN_A_CERTIFICATE: OK\n=== Source Location Trace: === \nsrc/core/util/status_helper.cc:68\n"
        f" shutdown=false index=2, {args}\n"
        "I1122 15:36:05.5 24465 channel_trace.h:396] handshake manager 0x1: Failed with error: UNKNOWN: x: OK\n"
        "=== Source Location Trace: ===\nsrc/core/util/status_helper.cc:68\n\n"
        "\nterminate called\nF1122 15:36:05.5 24465 chttp2.cc:1] Check failed\nno end"
    )
    for size in (1, 7, len(text)):
        failed: list[tuple[str, str]] = []
        other: list[bytes] = []
        reader = handshakes.Reader(lambda *facts, to=failed: to.append(facts), other.append)  # type: ignore[misc]
        for at in range(0, len(text), size):
            reader.read(text[at : at + size].encode())
        reader.end()
        assert failed == [("NO_CERTIFICATE", "[::1]:3333")]
        passed = b"".join(other).decode().split("\n")
        assert [line for line in passed if line] == [
            "Fatal Python error: one",
            "terminate called",
            "F1122 15:36:05.5 24465 chttp2.cc:1] Check failed",
            "no end",
        ]


def test_what_is_left_out_of_a_second_is_counted() -> None:
    now = 0.0
    lines: list[dict[str, Any]] = []
    report = handshakes.FailureLog(lambda **facts: lines.append(facts), lambda: now)
    for number in range(25):
        report.failed("CLOSED" if number % 2 else "NOT_TLS", f"peer {number}")
    assert len(lines) == handshakes.LINES_PER_SECOND
    now = 1.0
    report.failed("CLOSED", "last")
    assert lines[handshakes.LINES_PER_SECOND :] == [
        {"reason": "CLOSED", "more": 7},
        {"reason": "NOT_TLS", "more": 8},
        {"peer": "last", "reason": "CLOSED"},
    ]


def test_what_was_counted_when_the_service_ends_is_told() -> None:
    failed = b"E1122 15:36:05.5 1 handshaker.cc:155] CallNextHandshakerLocked: error=UNKNOWN: Socket closed "
    peer = b"endpoint_peer_address=ipv4:127.0.0.1:3333\n"
    command = [sys.executable, "-I", "-m", "fairwall.rpc.handshakes"]
    ended = subprocess.run(command, input=(failed + peer) * 12, capture_output=True, check=True)
    lines = [json.loads(line) for line in ended.stderr.splitlines()]
    assert [line.get("more", 1) for line in lines] == [1] * handshakes.LINES_PER_SECOND + [2]


def test_the_reader_needs_no_library() -> None:
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", "import sys, fairwall.rpc.handshakes; print({'grpc', 'numpy'} & {*sys.modules})"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout == "set()\n"
