"""A run's certificates: who can prove to be whom, tried in TLS handshakes in memory."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID

from fairwall.rpc.identity import PARTIES, SERVERS, Credentials
from sim.play.keys import mint
from sim.runs.folder import RunFolder

RUN, OTHER = mint("one-run"), mint("one-run")
"""Two runs that even have the same name."""

CLIENTS = [party for party in PARTIES if party not in SERVERS]


def certificate(party: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate(RUN[party].certificate.encode())


def authority(credentials: Credentials) -> x509.Certificate:
    return x509.load_pem_x509_certificate(credentials.authority.encode())


def handshake(folder: Path, client: Credentials, server: Credentials, name: str) -> None:
    """Let two parties prove themselves to each other; raise what either finds wrong."""
    contexts = []
    for side, own in ((ssl.PROTOCOL_TLS_CLIENT, client), (ssl.PROTOCOL_TLS_SERVER, server)):
        context = ssl.SSLContext(side)
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=own.authority)
        chain = folder / "chain.pem"
        chain.write_text(own.certificate + own.key)
        context.load_cert_chain(chain)
        contexts.append(context)
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    unfinished = [
        contexts[0].wrap_bio(to_client, to_server, server_hostname=name),
        contexts[1].wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(5):
        for end in list(unfinished):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            unfinished.remove(end)
    assert not unfinished


def test_every_party_and_every_server_of_a_run_prove_themselves_to_each_other(tmp_path: Path) -> None:
    for client in PARTIES:
        for server in SERVERS:
            handshake(tmp_path, RUN[client], RUN[server], f"{server}.one-run.fairwall")


def test_a_server_cannot_stand_for_another(tmp_path: Path) -> None:
    for server, meant in [("developer", "compliance"), ("compliance", "referee")]:
        with pytest.raises(ssl.SSLCertVerificationError, match="mismatch"):
            handshake(tmp_path, RUN["adversary"], RUN[server], f"{meant}.one-run.fairwall")


def test_a_party_that_serves_nothing_cannot_stand_for_a_server(tmp_path: Path) -> None:
    for party in CLIENTS:
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(tmp_path, RUN["developer"], RUN[party], f"{party}.one-run.fairwall")


def test_two_runs_do_not_know_each_other(tmp_path: Path) -> None:
    for client, server in [(RUN, OTHER), (OTHER, RUN)]:
        with pytest.raises(ssl.SSLCertVerificationError):
            handshake(tmp_path, client["developer"], server["compliance"], "compliance.one-run.fairwall")


def test_a_server_refuses_a_client_of_another_run_though_the_client_would_take_it(tmp_path: Path) -> None:
    stranger = Credentials(
        run="one-run",
        party="developer",
        authority=RUN["developer"].authority,
        certificate=OTHER["developer"].certificate,
        key=OTHER["developer"].key,
    )
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(tmp_path, stranger, RUN["compliance"], "compliance.one-run.fairwall")


def test_a_certificate_names_its_party_as_a_caller_and_if_it_serves_as_a_server() -> None:
    for party in PARTIES:
        names = certificate(party).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.UniformResourceIdentifier) == [f"fairwall://one-run/{party}"]
        assert names.get_values_for_type(x509.DNSName) == [f"{party}.one-run.fairwall"] * (party in SERVERS)


def test_only_a_server_may_use_its_certificate_as_one() -> None:
    for party in PARTIES:
        uses = certificate(party).extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert ExtendedKeyUsageOID.CLIENT_AUTH in uses
        assert (ExtendedKeyUsageOID.SERVER_AUTH in uses) == (party in SERVERS)


def test_a_party_can_issue_nothing() -> None:
    for party in PARTIES:
        extensions = certificate(party).extensions
        assert not extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        assert not extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign


def test_every_party_holds_its_own_key_and_nobody_the_authoritys() -> None:
    keys = {party: load_pem_private_key(own.key.encode(), None) for party, own in RUN.items()}
    for party, key in keys.items():
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        assert key.public_key() == certificate(party).public_key()
    assert len({own.key for own in RUN.values()}) == len(PARTIES)
    assert len({own.authority for own in RUN.values()}) == 1
    assert authority(RUN["referee"]).public_key() not in [key.public_key() for key in keys.values()]
    assert all(own.authority.count("-----BEGIN CERTIFICATE") == 1 for own in RUN.values())
    assert not any("PRIVATE KEY" in own.authority + own.certificate for own in RUN.values())


def test_certificates_of_two_runs_share_neither_key_nor_number() -> None:
    first, second = authority(RUN["referee"]), authority(OTHER["referee"])
    assert first.public_key() != second.public_key()
    numbers = [x509.load_pem_x509_certificate(own.certificate.encode()).serial_number for own in RUN.values()]
    numbers += [x509.load_pem_x509_certificate(own.certificate.encode()).serial_number for own in OTHER.values()]
    assert len(set(numbers)) == 2 * len(PARTIES)


def test_a_certificate_is_valid_now_and_not_for_ever() -> None:
    for party in PARTIES:
        now, valid = datetime.now(UTC), certificate(party)
        assert valid.not_valid_before_utc < now < valid.not_valid_after_utc < now + timedelta(days=31)


def test_only_the_parties_asked_for_get_a_certificate() -> None:
    assert list(mint("r", ["compliance", "developer"])) == ["compliance", "developer"]


def test_every_folder_a_run_can_have_names_a_run_that_certificates_can_be_minted_for(tmp_path: Path) -> None:
    for name in ["x", "a scenario of a longer name than most", "y" * 80]:
        run = RunFolder.create(tmp_path, name).path.name
        credentials = mint(run)["compliance"]
        leaf = x509.load_pem_x509_certificate(credentials.certificate.encode())
        leaf.verify_directly_issued_by(authority(credentials))
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.DNSName) == [f"compliance.{run}.fairwall"]


def test_a_deployment_s_developers_have_names_and_serve_nothing() -> None:
    minted = mint("loans", ("compliance",), developers=("alice", "bob"), valid=timedelta(days=400))
    assert list(minted) == ["compliance", "developer-alice", "developer-bob"]
    for name in ("alice", "bob"):
        leaf = x509.load_pem_x509_certificate(minted[f"developer-{name}"].certificate.encode())
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        assert names.get_values_for_type(x509.UniformResourceIdentifier) == [f"fairwall://loans/developer/{name}"]
        assert names.get_values_for_type(x509.DNSName) == []
        uses = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        assert list(uses) == [ExtendedKeyUsageOID.CLIENT_AUTH]
        assert leaf.not_valid_after_utc > datetime.now(UTC) + timedelta(days=399)
