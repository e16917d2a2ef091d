"""Identity of callers, read from the certificate, never from a request.

A party's certificate carries the SAN URI ``fairwall://<run>/<party>``, its identity as a caller, and the SAN DNS name
``<party>.<run>.fairwall``, which a client demands of a server. A deployment's developers have names:
``fairwall://<deployment>/developer/<name>``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc

from fairwall.errors import UserError
from fairwall.files import require_end
from fairwall.rpc.revoked import Revoked

if TYPE_CHECKING:
    from cryptography import x509

PARTIES = ("compliance", "developer", "adversary", "referee")
SERVERS = ("compliance", "developer", "referee")
"""Parties whose certificate may stand for a server."""

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
"""Names of deployments and developers: one label of a DNS name, in lower case."""

_URI = re.compile(rf"fairwall://([^/]+)/(?:({'|'.join(PARTIES)})|developer/({NAME.pattern}))")


class CredentialsError(UserError):
    """Credentials that cannot be used; the message is one line that names the file."""


@dataclass(frozen=True)
class Credentials:
    """A party's credentials: PEM texts. No one else has the private key."""

    run: str
    party: str
    authority: str
    certificate: str
    key: str = field(repr=False)


@dataclass(frozen=True)
class Caller:
    """A party of a run; a developer of a deployment also has a name."""

    run: str
    party: str
    name: str = ""


def uri_of(run: str, party: str, name: str = "") -> str:
    """Return a party's URI as a caller."""
    return f"fairwall://{run}/{party}" + (f"/{name}" if name else "")


def server_name_of(run: str, party: str) -> str:
    """Return a party's DNS name as a server."""
    return f"{party}.{run}.fairwall"


def identify(context: grpc.ServicerContext) -> Caller | None:
    """Return the caller that the trusted authority certifies; None if the certificate names nobody, or several."""
    # Only URIs: a DNS name or an address may have any text.
    names: Any = context.auth_context().get("peer_uri", ())
    return _caller_named(tuple(names))


@functools.lru_cache(1024)
def _caller_named(names: tuple[bytes, ...]) -> Caller | None:
    return _only_caller(name.decode("utf-8", "replace") for name in names)


def certificates_of(context: grpc.ServicerContext) -> tuple[bytes, ...]:
    """Return the caller's certificate in PEM; empty without one."""
    shown: Any = context.auth_context().get("x509_pem_cert", ())
    return tuple(shown)


def are_valid(certificates: Iterable[bytes], revoked: Revoked | None = None) -> bool:
    """Return whether a caller's certificates are still valid, for old connections; RevokedError if that is unknown."""
    return all(datetime.now(UTC) <= _end_of(pem) and not (revoked and revoked.holds(pem)) for pem in certificates)


@functools.lru_cache(1024)
def _end_of(pem: bytes) -> datetime:
    from cryptography import x509

    return x509.load_pem_x509_certificate(pem).not_valid_after_utc


def caller_of(context: grpc.ServicerContext, run: str) -> str | None:
    """Return the party of this run that is calling; None for a caller of another run."""
    caller = identify(context)
    return caller.party if caller is not None and caller.run == run else None


def load(folder: Path) -> Credentials:
    """Return the credentials in ``authority.pem``, ``certificate.pem`` and ``key.pem``, of the certificate's party.

    CredentialsError if a file is unreadable, the key is readable by others, or the three do not fit or are not valid.
    """
    # Imported here, because a game's parties do not need it, and it takes time.
    from cryptography import x509

    authority, chain, key = (_text(folder / f"{part}.pem") for part in ("authority", "certificate", "key"))
    if (folder / "key.pem").stat().st_mode & 0o077:
        raise CredentialsError(f"{folder / 'key.pem'}: others than its owner can use it; chmod 600 it")
    try:
        x509.load_pem_x509_certificates(authority.encode())
    except ValueError:
        raise CredentialsError(f"{folder / 'authority.pem'}: no certificate in PEM") from None
    try:
        certificate = x509.load_pem_x509_certificate(chain.encode())
        caller = named(certificate)
    except ValueError:
        caller = None
    if caller is None:
        raise CredentialsError(
            f"{folder / 'certificate.pem'}: no certificate of one party; mint it as docs/serving.md says"
        )
    if certificate.not_valid_before_utc > datetime.now(UTC):
        raise CredentialsError(
            f"{folder / 'certificate.pem'}: holds only from {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC on; "
            "is this machine's clock right?"
        )
    if certificate.not_valid_after_utc < datetime.now(UTC):
        raise CredentialsError(
            f"{folder / 'certificate.pem'}: expired at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        )
    credentials = Credentials(caller.run, caller.party, authority, chain, key)
    if unusable(credentials):
        raise CredentialsError(f"{folder / 'key.pem'}: not the private key of certificate.pem, or under a password")
    return credentials


def unusable(credentials: Credentials) -> str:
    """Return an error if authority, certificate or key is unusable; empty if all fit together."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        x509.load_pem_x509_certificates(credentials.authority.encode())
    except ValueError:
        return "the authority is no certificate in PEM"
    try:
        certificate = x509.load_pem_x509_certificate(credentials.certificate.encode())
    except ValueError:
        return "the certificate is none in PEM"
    try:
        key = load_pem_private_key(credentials.key.encode(), None)
    except (ValueError, TypeError):
        return "the key is no private key in PEM, or under a password"
    return "" if key.public_key() == certificate.public_key() else "the key is not the certificate's"


def named(certificate: x509.Certificate) -> Caller | None:
    """Return the caller that a certificate names; None for nobody, or more than one caller."""
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    return _only_caller(names.get_values_for_type(x509.UniformResourceIdentifier))


def name_in(certificate: str) -> str:
    """Return a developer's name in its certificate, PEM; "" if there is none."""
    from cryptography import x509

    caller = named(x509.load_pem_x509_certificate(certificate.encode()))
    return "" if caller is None else caller.name


def _only_caller(names: Iterable[str]) -> Caller | None:
    callers = [match for name in names if (match := _URI.fullmatch(name))]
    if len(callers) != 1:
        return None
    run, party, developer = callers[0].group(1, 2, 3)
    return Caller(run, party or "developer", developer or "")


def _text(path: Path) -> str:
    try:
        require_end(path)
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "not PEM text"
        raise CredentialsError(f"{path}: cannot be read: {why}") from None
