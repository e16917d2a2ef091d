"""An address is "host:port", each refusal says what to write, and no proxy stands before this machine."""

from __future__ import annotations

import socket
from pathlib import Path

import grpc
import pytest

from compliance.deployment.policy.reading import read
from compliance.deployment.policy.schema import PolicyError
from fairwall.client import AuditClient, AuditUnavailable
from fairwall.compliance.v1.audit_service_pb2 import GetTermsRequest
from fairwall.rpc import addresses, channel
from fairwall.rpc.turns import Seat
from sim.conformance.certificates import LaxAuthority
from tests.support.loans_deployment import free_port

WRITTEN = {
    "::1:7443": ", and one of IPv6 in brackets: write [::1]:7443",
    "2001:db8::7:7443": ", and one of IPv6 in brackets: write [2001:db8::7]:7443",
    "*:7443": ": write 0.0.0.0:7443 for all of this machine's addresses",
    ":7443": ": write 0.0.0.0:7443 for all of this machine's addresses",
    "http://audits.example:7443": ": write audits.example:7443",
    "localhost": ", such as 127.0.0.1:7443",
    "localhost:70000": ", such as 127.0.0.1:7443",
    "localhost:https": ", such as 127.0.0.1:7443",
}


@pytest.fixture(scope="module")
def credentials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    own = LaxAuthority("ours").issue("fairwall://loans/developer/alice")
    for part in ("authority", "certificate", "key"):
        (folder / f"{part}.pem").write_text(getattr(own, part))
        (folder / f"{part}.pem").chmod(0o600)
    return folder


@pytest.mark.parametrize("address", WRITTEN)
def test_a12_what_is_no_address_is_answered_with_what_to_write(address: str, credentials: Path, tmp_path: Path) -> None:
    assert addresses.mistake(address) == WRITTEN[address]
    with pytest.raises(ValueError, match="is not host:port"):
        AuditClient(address, credentials)
    (tmp_path / "policy.toml").write_text(
        f'[deployment]\nname = "loans"\nlisten = "{address}"\ncredentials = "c"\nledger = "l"\nseal = "s"\n[data]\n'
    )
    with pytest.raises(PolicyError) as refused:
        read(tmp_path / "policy.toml")
    assert f"deployment.listen: must be host:port{WRITTEN[address]}, not {address!r}" in str(refused.value)


@pytest.mark.parametrize("address", ["127.0.0.1:7443", "[::1]:0", "localhost:65535", "audits.example:7443"])
def test_addresses_are(address: str) -> None:
    assert addresses.mistake(address) == ""


def test_a12_loopback_takes_no_proxy_and_another_s_failure_names_it(
    credentials: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        down = free_port()
        monkeypatch.setenv("https_proxy", f"http://me:secret@127.0.0.1:{down}")
        monkeypatch.delenv("no_proxy", raising=False)
        port = listening.getsockname()[1]
        listening.settimeout(10)
        with AuditClient(f"localhost:{port}", credentials) as audits:
            asked = audits._service.GetTerms.future(GetTermsRequest(), timeout=10)
            with listening.accept()[0]:  # it came past the proxy
                asked.cancel()
    with AuditClient("audits.example:7443", credentials) as audits, pytest.raises(AuditUnavailable) as refused:
        audits.terms()
    assert f"the proxy of your environment, https_proxy = 127.0.0.1:{down}, does not" in str(refused.value)
    assert "secret" not in str(refused.value)
    monkeypatch.setenv("no_proxy", "other, .example")
    assert addresses.proxy_of("audits.example:7443") == ""


def test_b6_a_party_that_listens_nowhere_fails_whoever_calls_it_and_nobody_else() -> None:
    own = LaxAuthority("ours").issue("fairwall://loans/developer/alice")
    with (
        channel.connect("127.0.0.1:1", "referee", own) as referee,
        Seat(referee, "", own).reach("developer") as nowhere,
    ):
        assert isinstance(nowhere.unary_unary("/x/y").future(b"", timeout=10).exception(), grpc.RpcError)
