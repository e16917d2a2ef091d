"""A deployment's certificates: a folder for each, keys that are private, nothing overwritten, no authority's key."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from fairwall.rpc.identity import CredentialsError, load
from sim.deployment.certificates import CertificatesError, write


def minted(folder: Path, *developers: str, days: int = 365) -> list[Path]:
    return write(folder, "loans", developers or ("alice", "bob"), days)


def test_compliance_and_every_developer_get_a_folder_with_three_files(tmp_path: Path) -> None:
    folders = minted(tmp_path / "new" / "certificates")
    assert [folder.name for folder in folders] == ["compliance", "developer-alice", "developer-bob"]
    for folder in folders:
        assert sorted(path.name for path in folder.iterdir()) == ["authority.pem", "certificate.pem", "key.pem"]
        assert (folder / "key.pem").stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700
    texts = [path.read_text() for path in tmp_path.rglob("*.pem")]
    assert sum("PRIVATE KEY" in text for text in texts) == len(folders)


def test_the_folders_load_as_the_credentials_of_whom_they_are_for(tmp_path: Path) -> None:
    loaded = [load(folder) for folder in minted(tmp_path)]
    assert [own.party for own in loaded] == ["compliance", "developer", "developer"]
    assert {own.run for own in loaded} == {"loans"}
    assert len({own.authority for own in loaded}) == 1


def test_nothing_is_overwritten_and_a_refusal_writes_nothing(tmp_path: Path) -> None:
    minted(tmp_path, "bob")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.pem")}
    with pytest.raises(CertificatesError, match="compliance: is there already"):
        minted(tmp_path, "alice")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.pem")} == before


@pytest.mark.parametrize("name", ["", "Alice", "a/b", "a.b", "-a", "a-", "a" * 64, "a\n"])
def test_a_name_that_cannot_stand_in_a_certificate_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(CertificatesError, match="a name must be"):
        minted(tmp_path, name)
    with pytest.raises(CertificatesError, match="a name must be"):
        write(tmp_path, name, ("alice",), 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("developers", [(), ("alice", "alice")])
def test_every_developer_is_named_once(tmp_path: Path, developers: tuple[str, ...]) -> None:
    with pytest.raises(CertificatesError, match="--developer"):
        write(tmp_path, "loans", developers, 1)


def test_certificates_hold_as_long_as_asked(tmp_path: Path) -> None:
    for folder in minted(tmp_path, days=10):
        leaf = x509.load_pem_x509_certificate((folder / "certificate.pem").read_bytes())
        left = leaf.not_valid_after_utc - datetime.now(UTC)
        assert timedelta(days=9) < left <= timedelta(days=10)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    folder = minted(tmp_path)[1]
    (folder / "key.pem").chmod(mode)
    with pytest.raises(CredentialsError, match=r"key\.pem: others than its owner can use it; chmod 600 it"):
        load(folder)


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    compliance, alice, bob = minted(tmp_path)
    os.replace(bob / "key.pem", alice / "key.pem")
    with pytest.raises(CredentialsError, match=r"key\.pem: not the private key of certificate\.pem"):
        load(alice)
    (bob / "key.pem").write_text("no key")
    (bob / "key.pem").chmod(0o600)
    with pytest.raises(CredentialsError, match=r"key\.pem: not the private key"):
        load(bob)
    os.replace(compliance / "authority.pem", compliance / "certificate.pem")
    with pytest.raises(CredentialsError, match=r"authority\.pem: cannot be read: No such file"):
        load(compliance)


@pytest.mark.parametrize("text", ["", "no certificate"])
def test_what_is_no_party_s_certificate_is_refused(tmp_path: Path, text: str) -> None:
    compliance, alice, _ = minted(tmp_path)
    (alice / "certificate.pem").write_text(text or (compliance / "authority.pem").read_text())
    with pytest.raises(CredentialsError, match=r"certificate\.pem: no certificate of one party"):
        load(alice)


def test_a_certificate_that_has_expired_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(CredentialsError, match=r"certificate\.pem: expired at 20"):
        load(write(tmp_path, "loans", ("alice",), 0)[0])
