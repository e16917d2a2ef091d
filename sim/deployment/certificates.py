"""A deployment's certificates, in one folder for each owner: issued, renewed and revoked.

The authority's key has its own folder. ``issued.pem`` has every certificate; the revoked list has serial numbers only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from compliance.ledger.head import sync_folder
from fairwall.errors import UserError
from fairwall.rpc.identity import NAME, Caller, Credentials, named
from fairwall.rpc.revoked import read as read_list
from sim.play.keys import RunAuthority


def replace(path: Path, text: str) -> None:
    """Write or replace a file, atomically and durably; a new one is for its owner alone from the beginning.

    A replaced file keeps its mode, and its owner where the system allows: its reader, a service, may be another user.
    """
    path = path.resolve()  # a link to it stays one
    aside = path.with_name(f"{path.name}.new")
    aside.unlink(missing_ok=True)
    with os.fdopen(os.open(aside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        if path.exists():
            old = path.stat()
            with contextlib.suppress(PermissionError):
                os.fchown(file.fileno(), old.st_uid, old.st_gid)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    sync_folder(path.parent)


COMPLIANCE = "compliance"
"""The service's name, which no developer may have."""

DAYS_MAX = 3650

_PEM = serialization.Encoding.PEM


class CertificatesError(UserError):
    """A request to issue or revoke certificates that cannot be met. Its text is one line with the remedy."""


@dataclass(frozen=True)
class Issued:
    """An issued certificate: its owner, serial number and end, and whether it is revoked."""

    caller: Caller
    serial: int
    until: datetime
    is_revoked: bool

    @property
    def owner(self) -> str:
        """The developer's name, or the service's."""
        return self.caller.name or self.caller.party


def write(
    folder: Path, deployment: str, developers: Sequence[str], days: int, authority: RunAuthority | None = None
) -> list[Path]:
    """Issue the certificates of a deployment, valid for ``days``; return the folders of compliance and the developers.

    ``folder`` gets ``compliance/`` and a ``developer-<name>/`` for each developer, with ``authority.pem``,
    ``certificate.pem`` and ``key.pem``, compliance's also with an empty list ``revoked.pem``; and ``issued.pem``.
    Without an ``authority`` one is minted for ten years, and its certificate and key are in ``authority/``.
    """
    for name in (deployment, *developers):
        _check_name(name)
    if not developers or len(set(developers)) < len(developers):
        raise CertificatesError("--developer: name at least one developer, and each once")
    minted = authority is None
    authority = authority or RunAuthority.new(deployment, datetime.now(UTC) + timedelta(days=DAYS_MAX + 1))
    until = _until(authority, days)
    paths = {_folder(folder, name): name for name in (COMPLIANCE, *developers)}
    for path in (*paths, folder / "issued.pem", *([folder / "authority"] if minted else [])):
        if path.exists():
            raise CertificatesError(f"{path}: is there already; a certificate is never overwritten")
    credentials = {path: _issue(authority, deployment, name, until) for path, name in paths.items()}
    folder.mkdir(parents=True, exist_ok=True)
    replace(folder / "issued.pem", "".join(each.certificate for each in credentials.values()))
    if minted:
        key = authority.key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        _write(folder / "authority", {"authority": authority.pem, "key": key.decode()})
    for path, each in credentials.items():
        _give(path, each)
    replace(folder / COMPLIANCE / "revoked.pem", _list(authority, None, ()))
    return list(paths)


def authority_of(certificate: Path, key: Path) -> RunAuthority:
    """Read an authority's certificate (whatever follows it in its file goes to all parties) and its key, PEM.

    Raises CertificatesError if a file cannot be read, the certificate is no authority's or not valid now, or the key
    does not belong to it, has a password, is neither EC nor RSA, or is readable by other users.
    """
    pem = _text(certificate)
    try:
        own = x509.load_pem_x509_certificates(pem.encode())[0]
        signs = own.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        usage = [each.value for each in own.extensions if isinstance(each.value, x509.KeyUsage)]
        signs = signs and all(each.key_cert_sign and each.crl_sign for each in usage)
    except (ValueError, x509.ExtensionNotFound):
        signs = False
    if not signs:
        raise CertificatesError(
            f"{certificate}: not the certificate of an authority that may sign certificates and lists of revoked ones"
        )
    try:
        private = load_pem_private_key(_text(key).encode(), None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise CertificatesError(f"{key}: not a private key in PEM, or under a password") from None
    if key.stat().st_mode & 0o077:
        raise CertificatesError(f"{key}: others than its owner can use it; chmod 600 it")
    if private.public_key() != own.public_key():
        raise CertificatesError(f"{key}: not the private key of {certificate}")
    if not isinstance(private, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise CertificatesError(f"{key}: must be an EC or an RSA key")
    now = datetime.now(UTC)
    if now < own.not_valid_before_utc:
        raise CertificatesError(
            f"{certificate}: holds only from {_moment(own.not_valid_before_utc)} on; is this machine's clock right?"
        )
    if own.not_valid_after_utc < now:
        raise CertificatesError(
            f"{certificate}: expired at {_moment(own.not_valid_after_utc)}: make new certificates for all"
        )
    return RunAuthority(pem, private)


def add(folder: Path, name: str, days: int, authority: RunAuthority) -> Path:
    """Issue a further developer's certificate into a folder that `write` filled, and return its folder.

    Raises CertificatesError if the developer has a certificate already, or those in ``folder`` are not this
    authority's; and OSError.
    """
    _check_name(name)
    with _register(folder, authority) as register:
        path = _folder(folder, name)
        if register.of(name) or path.exists():
            raise CertificatesError(f"{name}: has a certificate already; renew it")
        _give(path, register.issue(authority, name, days))
        return path


def renew(folder: Path, name: str, days: int, authority: RunAuthority, *, revoke_old: bool = False) -> Path:
    """Issue a new certificate and key to a developer or `COMPLIANCE`, in place of old files; return their folder.

    Older certificates of the developer remain valid unless ``revoke_old``.
    """
    with _register(folder, authority) as register:
        old = register.known(name)
        if revoke_old:
            _check_revocable(name)
        path = _folder(folder, name)
        _give(path, register.issue(authority, name, days))
        if revoke_old:
            _revoke(folder, authority, old)
        return path


def revoke(folder: Path, name: str, authority: RunAuthority, serial: int | None = None) -> int:
    """Revoke a developer's certificates, or the one with this serial number; return how many were newly listed."""
    with _register(folder, authority) as register:
        meant = register.known(name)
        _check_revocable(name)
        if serial is not None:
            meant = [each for each in meant if each.serial_number == serial]
            if not meant:
                raise CertificatesError(f"--serial: {name} has no certificate of number {serial:X}")
        return _revoke(folder, authority, meant)


def issued(folder: Path) -> list[Issued]:
    """Return the issued certificates, in order; CertificatesError or RevokedError if they cannot be read."""
    with _register(folder) as register:
        listed = read_list(folder / COMPLIANCE / "revoked.pem", _text(folder / COMPLIANCE / "authority.pem"))
        revoked = {each.serial_number for each in listed}
        return [
            Issued(caller, each.serial_number, each.not_valid_after_utc, each.serial_number in revoked)
            for caller, each in register.certificates
        ]


@dataclass(frozen=True)
class _Register:
    """The issued certificates, and the locked file that has them."""

    descriptor: int
    certificates: tuple[tuple[Caller, x509.Certificate], ...]

    def of(self, name: str) -> list[x509.Certificate]:
        return [each for caller, each in self.certificates if name == (caller.name or caller.party)]

    def known(self, name: str) -> list[x509.Certificate]:
        found = self.of(name)
        if not found:
            raise CertificatesError(f"{name}: nobody of that name has a certificate: add issues one")
        return found

    def issue(self, authority: RunAuthority, name: str, days: int) -> Credentials:
        """Issue a certificate, recorded before anybody has it."""
        (deployment,) = {caller.run for caller, _ in self.certificates}
        credentials = _issue(authority, deployment, name, _until(authority, days))
        os.write(self.descriptor, credentials.certificate.encode())
        os.fsync(self.descriptor)
        return credentials


@contextmanager
def _register(folder: Path, authority: RunAuthority | None = None) -> Iterator[_Register]:
    """Open and lock the file: with an authority to issue and revoke, else to read."""
    path = folder / "issued.pem"
    mode, lock = (os.O_RDONLY, fcntl.LOCK_SH) if authority is None else (os.O_RDWR | os.O_APPEND, fcntl.LOCK_EX)
    try:
        descriptor = os.open(path, mode)
    except OSError as error:
        raise CertificatesError(
            f"{path}: cannot be opened: {error.strerror}; name a folder that 'fairwall deploy certificates new' made"
        ) from None
    try:
        fcntl.flock(descriptor, lock)  # concurrent changes must not undo each other
        try:
            certificates = x509.load_pem_x509_certificates(path.read_bytes())
        except ValueError:
            raise CertificatesError(f"{path}: not certificates in PEM: bring back an untouched copy") from None
        callers = [(caller, each) for each in certificates if (caller := named(each)) is not None]
        if len(callers) < len(certificates) or len({caller.run for caller, _ in callers}) != 1:
            raise CertificatesError(f"{path}: not the certificates of one deployment: bring back an untouched copy")
        if authority is not None:
            try:
                certificates[0].verify_directly_issued_by(authority.certificate)
            except (ValueError, TypeError, InvalidSignature):
                raise CertificatesError(
                    f"{path}: these certificates were issued by another authority: name it by --authority"
                ) from None
        yield _Register(descriptor, tuple(callers))
    finally:
        os.close(descriptor)


def _issue(authority: RunAuthority, deployment: str, name: str, until: datetime) -> Credentials:
    if name == COMPLIANCE:
        return authority.issue(deployment, COMPLIANCE, until=until)
    return authority.issue(deployment, "developer", name, until=until)


def _revoke(folder: Path, authority: RunAuthority, certificates: Sequence[x509.Certificate]) -> int:
    path = folder / COMPLIANCE / "revoked.pem"
    before = read_list(path, authority.pem)
    listed = {each.serial_number for each in before}
    new = [each.serial_number for each in certificates if each.serial_number not in listed]
    if new:
        replace(path, _list(authority, before, new))
    return len(new)


def _list(authority: RunAuthority, before: x509.CertificateRevocationList | None, serials: Sequence[int]) -> str:
    now = datetime.now(UTC)
    number = 1
    builder = x509.CertificateRevocationListBuilder().issuer_name(authority.certificate.subject).last_update(now)
    # The next list is due at the next revocation, whose date is unknown.
    builder = builder.next_update(authority.certificate.not_valid_after_utc)
    if before is not None:
        numbers = [each.value for each in before.extensions if isinstance(each.value, x509.CRLNumber)]
        number += numbers[0].crl_number if numbers else 0
        for each in before:
            builder = builder.add_revoked_certificate(each)
    for serial in serials:
        revoked = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now).build()
        builder = builder.add_revoked_certificate(revoked)
    builder = builder.add_extension(x509.CRLNumber(number), critical=False)
    return builder.sign(authority.key, hashes.SHA256()).public_bytes(_PEM).decode()


def _until(authority: RunAuthority, days: int) -> datetime:
    until, end = datetime.now(UTC) + timedelta(days=days), authority.certificate.not_valid_after_utc
    if until > end:
        raise CertificatesError(f"--days: at most {(end - datetime.now(UTC)).days}, for then the authority's end comes")
    return until


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise CertificatesError(f"{name!r}: a name must be 1 to 63 lower-case letters, digits and hyphens")
    if name == COMPLIANCE:
        raise CertificatesError(f"{name}: is the service, and nobody else's name")


def _check_revocable(name: str) -> None:
    if name == COMPLIANCE:
        raise CertificatesError(
            f"{name}: cannot be revoked: developers read no list of revoked certificates; make new ones for all"
        )


def _folder(folder: Path, name: str) -> Path:
    return folder / (name if name == COMPLIANCE else f"developer-{name}")


def _give(folder: Path, credentials: Credentials) -> None:
    _write(folder, {part: getattr(credentials, part) for part in ("authority", "key", "certificate")})


def _write(folder: Path, files: dict[str, str]) -> None:
    folder.mkdir(parents=True, mode=0o700, exist_ok=True)
    for name, text in {".gitignore": "*\n", **{f"{name}.pem": text for name, text in files.items()}}.items():
        replace(folder / name, text)  # .gitignore, so that no private key is committed


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not PEM text"
        raise CertificatesError(f"{path}: cannot be read: {why}") from None


def _moment(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M} UTC"
