"""A deployment's certificates: a folder for each, keys that are private, an authority whose key nobody else has."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from fairwall.rpc.identity import CredentialsError, load
from fairwall.rpc.revoked import Revoked, RevokedError
from sim.deployment import certificates
from sim.deployment.certificates import CertificatesError, authority_of, issued, renew, revoke, write
from sim.play.keys import RunAuthority, mint


def minted(folder: Path, *developers: str, days: int = 365) -> list[Path]:
    return write(folder, "loans", developers or ("alice", "bob"), days)


def test_compliance_and_every_developer_get_a_folder_with_three_files(tmp_path: Path) -> None:
    folders = minted(tmp_path / "new" / "certificates")
    assert [folder.name for folder in folders] == ["compliance", "developer-alice", "developer-bob"]
    for folder in folders:
        list_of_revoked = ["revoked.pem"] * (folder.name == "compliance")
        files = [".gitignore", "authority.pem", "certificate.pem", "key.pem", *list_of_revoked]
        assert sorted(path.name for path in folder.iterdir()) == files
        assert (folder / "key.pem").stat().st_mode & 0o777 == 0o600
        assert folder.stat().st_mode & 0o777 == 0o700
    texts = [path.read_text() for path in tmp_path.rglob("*.pem")]
    assert sum("PRIVATE KEY" in text for text in texts) == len(folders) + 1


def test_b6_no_private_key_can_be_committed_from_a_working_tree(tmp_path: Path) -> None:
    """As README's example makes them below the checkout."""
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    minted(tmp_path / "certificates")
    listed = ["git", "-C", tmp_path, "status", "--porcelain", "--untracked-files=all"]
    seen = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
    assert "issued.pem" in seen
    assert "key.pem" not in seen


def test_the_authority_s_key_lies_in_no_party_s_folder_and_is_its_owner_s_alone(tmp_path: Path) -> None:
    folders = minted(tmp_path)
    own = authority_of(tmp_path / "authority" / "authority.pem", tmp_path / "authority" / "key.pem")
    assert own.key.public_key() == own.certificate.public_key()
    key = (tmp_path / "authority" / "key.pem").read_text()
    assert not any(key in path.read_text() for folder in folders for path in folder.iterdir())
    assert (tmp_path / "authority" / "key.pem").stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "authority").stat().st_mode & 0o777 == 0o700


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


def test_a_name_that_cannot_stand_in_a_certificate_is_refused(tmp_path: Path) -> None:
    for name in ["", "Alice", "a/b", "a.b", "-a", "a-", "a" * 64, "a\n"]:
        with pytest.raises(CertificatesError, match="a name must be"):
            minted(tmp_path, name)
        with pytest.raises(CertificatesError, match="a name must be"):
            write(tmp_path, name, ("alice",), 1)
        assert not list(tmp_path.iterdir())


def test_every_developer_is_named_once(tmp_path: Path) -> None:
    for developers in [(), ("alice", "alice")]:
        with pytest.raises(CertificatesError, match="--developer"):
            write(tmp_path, "loans", developers, 1)


def test_certificates_hold_as_long_as_asked(tmp_path: Path) -> None:
    for folder in minted(tmp_path, days=10):
        leaf = x509.load_pem_x509_certificate((folder / "certificate.pem").read_bytes())
        left = leaf.not_valid_after_utc - datetime.now(UTC)
        assert timedelta(days=9) < left <= timedelta(days=10)


def test_a_key_that_others_can_use_is_refused(tmp_path: Path) -> None:
    folder = minted(tmp_path)[1]
    for mode in (0o640, 0o604, 0o660):
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


# Later on ---------------------------------------------------------------------------------------------------------


def authority(folder: Path) -> RunAuthority:
    return authority_of(folder / "authority" / "authority.pem", folder / "authority" / "key.pem")


def serial(folder: Path) -> int:
    return x509.load_pem_x509_certificate((folder / "certificate.pem").read_bytes()).serial_number


def revoked(folder: Path) -> set[str]:
    return {f"{each.owner} {each.serial}" for each in issued(folder) if each.is_revoked}


def test_a_further_developer_gets_a_certificate_of_the_same_authority(tmp_path: Path) -> None:
    compliance, *_ = minted(tmp_path)
    before = {path: path.read_bytes() for path in compliance.iterdir()}
    carol = load(certificates.add(tmp_path, "carol", 10, authority(tmp_path)))
    assert (carol.run, carol.party, carol.authority) == ("loans", "developer", load(compliance).authority)
    assert [each.owner for each in issued(tmp_path)] == ["compliance", "alice", "bob", "carol"]
    assert {path: path.read_bytes() for path in compliance.iterdir()} == before


@pytest.mark.parametrize("name", ["compliance", "alice"])
def test_a_renewed_certificate_has_another_key_and_the_old_one_holds_on(tmp_path: Path, name: str) -> None:
    minted(tmp_path)
    folder = tmp_path / ("compliance" if name == "compliance" else f"developer-{name}")
    before, old = load(folder), serial(folder)
    assert renew(tmp_path, name, 10, authority(tmp_path)) == folder
    after = load(folder)
    assert (after.run, after.party, after.authority) == (before.run, before.party, before.authority)
    assert after.key != before.key
    assert serial(folder) != old
    assert not revoked(tmp_path)


def test_the_old_certificate_is_revoked_with_its_renewal_where_that_is_asked(tmp_path: Path) -> None:
    _, alice, bob = minted(tmp_path)
    old = (alice / "certificate.pem").read_bytes()
    number = serial(alice)
    renew(tmp_path, "alice", 10, authority(tmp_path), revoke_old=True)
    assert revoked(tmp_path) == {f"alice {number}"}
    found = Revoked(tmp_path / "compliance" / "revoked.pem", authority(tmp_path).pem)
    assert found.holds(old)
    assert not any(found.holds((folder / "certificate.pem").read_bytes()) for folder in (alice, bob))


def test_a_folder_that_was_given_away_is_made_anew(tmp_path: Path) -> None:
    _, alice, _ = minted(tmp_path)
    for path in (*alice.iterdir(),):
        path.unlink()
    alice.rmdir()
    renew(tmp_path, "alice", 10, authority(tmp_path))
    assert load(alice).party == "developer"


def test_who_is_revoked_is_so_with_all_her_certificates_and_stays_it(tmp_path: Path) -> None:
    _, alice, bob = minted(tmp_path)
    first = serial(alice)
    renew(tmp_path, "alice", 10, authority(tmp_path))
    second = serial(alice)
    assert revoke(tmp_path, "alice", authority(tmp_path)) == 2
    assert revoke(tmp_path, "alice", authority(tmp_path)) == 0
    assert revoke(tmp_path, "bob", authority(tmp_path), serial(bob)) == 1
    assert revoked(tmp_path) == {f"alice {first}", f"alice {second}", f"bob {serial(bob)}"}
    renew(tmp_path, "alice", 10, authority(tmp_path))
    assert len(revoked(tmp_path)) == 3


def spoil_list(folder: Path) -> Path:
    write(folder / "other", "loans", ("eve",), 1)
    os.replace(folder / "other/compliance/revoked.pem", folder / "compliance/revoked.pem")
    return folder


def without_list(folder: Path) -> Path:
    (folder / "compliance/revoked.pem").unlink()
    return folder


BAD: dict[str, tuple[Callable[[Path, RunAuthority], object], str]] = {
    "a duplicate": (lambda folder, own: certificates.add(folder, "bob", 1, own), "bob: has a certificate already"),
    "a duplicate of one that was revoked": (
        lambda folder, own: (revoke(folder, "bob", own), certificates.add(folder, "bob", 1, own)),
        "bob: has a certificate already; renew it",
    ),
    "a name that cannot be": (lambda folder, own: certificates.add(folder, "B", 1, own), "a name must be"),
    "the service's name": (lambda folder, own: certificates.add(folder, "compliance", 1, own), "is the service"),
    "nobody to renew": (lambda folder, own: renew(folder, "eve", 1, own), "eve: nobody of that name"),
    "nobody to revoke": (lambda folder, own: revoke(folder, "eve", own), "eve: nobody of that name"),
    "the service to revoke": (lambda folder, own: revoke(folder, "compliance", own), "developers read no list"),
    "the service's old one to revoke": (
        lambda folder, own: renew(folder, "compliance", 1, own, revoke_old=True),
        "developers read no list",
    ),
    "an unknown number": (lambda folder, own: revoke(folder, "bob", own, 18), "no certificate of number 12"),
    "too long": (lambda folder, own: renew(folder, "bob", 3655, own), "--days: at most 36"),
    "another authority": (
        lambda folder, _: renew(folder, "bob", 1, RunAuthority.new("loans", datetime.now(UTC) + timedelta(9))),
        "issued by another authority",
    ),
    "no folder": (lambda folder, own: renew(folder / "no", "bob", 1, own), "name a folder that"),
    "another authority's list": (
        lambda folder, own: revoke(spoil_list(folder), "bob", own),
        r"revoked\.pem: not signed by the authority",
    ),
    "no list": (
        lambda folder, own: revoke(without_list(folder), "bob", own),
        r"revoked\.pem: cannot be read: No such file",
    ),
    "a record of nothing": (
        lambda folder, own: ((folder / "issued.pem").write_text(""), revoke(folder, "bob", own)),
        r"issued\.pem: not certificates in PEM",
    ),
}


def test_what_cannot_be_done_is_refused_in_one_line_and_changes_nothing(tmp_path: Path) -> None:
    for number, (what, (act, why)) in enumerate(BAD.items()):
        folder = tmp_path / str(number)
        minted(folder)
        before = issued(folder)
        with pytest.raises((CertificatesError, RevokedError), match=why) as caught:
            act(folder, authority(folder))
        assert "\n" not in str(caught.value), what
        if not what.startswith(("a duplicate of", "another authority's", "no list", "a record")):
            assert issued(folder) == before, what


# An authority of the user's own -----------------------------------------------------------------------------------


def own_authority(
    folder: Path,
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ed25519.Ed25519PrivateKey,
    *,
    ca: bool = True,
    begins: timedelta = -timedelta(days=1),
    ends: timedelta = timedelta(days=30),
    password: bytes = b"",
) -> tuple[Path, Path]:
    """The files of an authority that somebody else made."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "The Bank's CA")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(datetime.now(UTC) + begins)
        .not_valid_after(datetime.now(UTC) + ends)
        .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        .sign(key, None if isinstance(key, ed25519.Ed25519PrivateKey) else hashes.SHA256())
    )
    encryption = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    paths = folder / "ca.pem", folder / "ca-key.pem"
    pem = serialization.Encoding.PEM
    paths[0].write_bytes(certificate.public_bytes(pem))
    paths[1].write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, encryption))
    paths[1].chmod(0o600)
    return paths


EC = ec.generate_private_key(ec.SECP384R1())


@pytest.mark.parametrize("key", [EC, rsa.generate_private_key(65537, 2048)], ids=["EC", "RSA"])
def test_an_authority_of_the_user_s_own_will_do(
    tmp_path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
) -> None:
    own = authority_of(*own_authority(tmp_path, key))
    place = tmp_path / "certificates"
    assert load(write(place, "loans", ("alice",), 10, own)[1]).authority == own.pem
    assert not (place / "authority").exists()
    load(certificates.add(place, "bob", 10, own))
    assert revoke(place, "alice", own) == 1
    assert {each.owner for each in issued(place) if each.is_revoked} == {"alice"}
    with pytest.raises(CertificatesError, match="--days: at most 29"):
        renew(place, "alice", 365, own)


def test_an_authority_that_cannot_sign_is_refused(tmp_path: Path) -> None:
    for spoiled, why in [
        ({"ca": False}, r"ca\.pem: not the certificate of an authority"),
        ({"begins": timedelta(hours=1)}, r"ca\.pem: holds only from .* on; is this machine's clock right\?"),
        ({"ends": -timedelta(hours=1)}, r"ca\.pem: expired at 20.*: make new certificates for all"),
        ({"password": b"secret"}, r"ca-key\.pem: not a private key in PEM, or under a password"),
        ({"key": ed25519.Ed25519PrivateKey.generate()}, r"ca-key\.pem: must be an EC or an RSA key"),
    ]:
        with pytest.raises(CertificatesError, match=why):
            authority_of(*own_authority(tmp_path, **{"key": EC, **spoiled}))


def test_files_that_are_no_authority_are_refused(tmp_path: Path) -> None:
    for spoil, why in [
        (lambda folder: (folder / "ca-key.pem").chmod(0o640), r"ca-key\.pem: others than its owner"),
        (lambda folder: (folder / "ca-key.pem").unlink(), r"ca-key\.pem: cannot be read: No such file"),
        (lambda folder: (folder / "ca-key.pem").write_text("no key"), r"ca-key\.pem: not a private key in PEM"),
        (lambda folder: (folder / "ca.pem").write_text("none"), r"ca\.pem: not the certificate of an authority"),
        (
            lambda folder: (folder / "ca.pem").write_text(mint("run")["referee"].authority),
            r"ca-key\.pem: not the private key of .*ca\.pem",
        ),
    ]:
        paths = own_authority(tmp_path, EC)
        spoil(tmp_path)
        with pytest.raises(CertificatesError, match=why):
            authority_of(*paths)


def test_a_certificate_that_does_not_hold_yet_is_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.now(tz) + timedelta(hours=1)

    with monkeypatch.context() as patch:
        patch.setattr("sim.play.keys.datetime", Ahead)
        folder = minted(tmp_path)[1]
    with pytest.raises(CredentialsError, match=r"certificate\.pem: holds only from .*; is this machine's clock right"):
        load(folder)
