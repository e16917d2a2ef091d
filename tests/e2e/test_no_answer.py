"""Why no answer came, in one line that says what to do: real sockets, where something else listens or nobody."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

import pytest

from fairwall.client import AuditClient, AuditRefused, AuditUnavailable
from fairwall.rpc.identity import Credentials
from sim.conformance.certificates import LaxAuthority
from tests.support.loans_deployment import PREDICTIONS, Deployment, free_port

NAME = "compliance.loans.fairwall"
OURS, OTHERS = LaxAuthority("ours"), LaxAuthority("others")


def kept(folder: Path, own: Credentials) -> Path:
    """Write credentials as a developer holds them."""
    folder.mkdir()
    for part in ("authority", "certificate", "key"):
        (folder / f"{part}.pem").write_text(getattr(own, part))
    (folder / "key.pem").chmod(0o600)
    return folder


@contextmanager
def listening(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Listen, answer each connection so, and hang up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):  # until it is closed
                while True:
                    connection, _ = listener.accept()
                    with connection, suppress(OSError):
                        answer(connection)

        threading.Thread(target=serve, daemon=True).start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        listener.shutdown(socket.SHUT_RDWR)


def web(connection: socket.socket) -> None:
    """Answer as a web server does that was asked for something odd."""
    connection.recv(1000)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def over_tls(folder: Path, *protocols: str) -> Callable[[socket.socket], None]:
    """Answer so over TLS with a certificate, and these of TLS' protocols."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
    if protocols:
        context.set_alpn_protocols(list(protocols))

    def answer(connection: socket.socket) -> None:
        with context.wrap_socket(connection, server_side=True) as tls:
            web(tls)

    return answer


def told(address: str, credentials: Path) -> str:
    with AuditClient(address, credentials) as audits, pytest.raises(AuditUnavailable) as caught:
        audits.terms()
    said = str(caught.value)
    assert said.startswith(f"no answer from {address}: ")
    assert "\n" not in said
    return said


@pytest.fixture
def alice(tmp_path: Path) -> Path:
    return kept(tmp_path / "alice", OURS.issue("fairwall://loans/developer/alice"))


def test_a_closed_port_is_told_from_a_host_that_nobody_knows(alice: Path) -> None:
    assert "nobody is there: nothing listens on this port" in told(f"127.0.0.1:{free_port()}", alice)
    assert "no host of this name is known here" in told("nosuchhost.invalid:7443", alice)


def test_what_speaks_no_tls_is_told_from_a_web_server(alice: Path, tmp_path: Path) -> None:
    with listening(web) as address:
        assert "does not speak TLS" in told(address, alice)
    server = kept(tmp_path / "server", OURS.issue("fairwall://loans/compliance", server=NAME))
    for protocols in ((), ("h2",)):
        with listening(over_tls(server, *protocols)) as address:
            assert "speaks HTTPS as web servers do" in told(address, alice)


@pytest.mark.check
def test_what_listens_and_says_nothing_is_given_up(alice: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert "something listens there, and says nothing" in told(f"127.0.0.1:{listener.getsockname()[1]}", alice)


def test_a_proxy_is_named(alice: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbid(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 403 Forbidden\r\n\r\n")

    with listening(forbid) as proxy:
        monkeypatch.setenv("https_proxy", f"http://{proxy}")
        monkeypatch.setenv("no_proxy", "")
        assert "the proxy of your environment, https_proxy = " in told("192.0.2.1:7443", alice)


def test_an_address_without_a_port_is_refused_before_it_is_tried(alice: Path) -> None:
    with pytest.raises(ValueError, match=r"'compliance\.example' is not host:port"):
        AuditClient("compliance.example", alice)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("authority", "name", "issued", "said"),
    [
        (OTHERS, NAME, {}, "its certificate is not by your authority.pem"),
        (OURS, NAME, {"valid": timedelta(days=-1)}, "has expired: compliance renews it"),
        (OURS, NAME, {"begins": timedelta(hours=1)}, "does not hold yet: is this machine's clock right?"),
        (OURS, "compliance.hiring.fairwall", {}, "names another deployment than yours"),
        (OURS, NAME, {"serves": False}, "is no server's"),
    ],
    ids=["of another authority", "expired", "of tomorrow", "of another deployment", "a client's"],
)
def test_a_server_s_certificate_that_is_not_accepted_says_why(
    alice: Path, tmp_path: Path, authority: LaxAuthority, name: str, issued: dict[str, timedelta], said: str
) -> None:
    server = kept(tmp_path / "server", authority.issue("fairwall://loans/compliance", server=name, **issued))
    with listening(over_tls(server, "h2")) as address:
        assert said in told(address, alice)


def test_a_service_says_apart_whom_it_does_not_know_and_what_it_does_not_have(tmp_path: Path) -> None:
    deployment = Deployment(tmp_path)
    own = tmp_path / "certificates" / "developer-alice"
    trusted = (own / "authority.pem").read_text()
    stranger = OTHERS.issue("fairwall://loans/developer/alice")
    mixed = kept(tmp_path / "mixed", Credentials("loans", "developer", trusted, stranger.certificate, stranger.key))
    with deployment.served():
        assert "it does not accept your certificate" in told(deployment.address, mixed)
        with deployment.client("alice") as audits:
            with pytest.raises(AuditUnavailable, match=r"the service has no data set with a release, .*UNIMPLEMENTED"):
                audits.release_terms()
            with pytest.raises(ValueError, match="this service's rows have no ids to compare yours with"):
                audits.ask(PREDICTIONS, "sp", 0.5, ids=list(range(PREDICTIONS.size)))
        with (
            AuditClient(deployment.address, own, data="lones") as audits,
            pytest.raises(AuditRefused, match="the service has no data set 'lones', or none that you may ask about"),
        ):
            audits.terms()
