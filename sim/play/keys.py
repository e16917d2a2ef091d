"""Certificate authorities and the certificates they issue. A run's authority is its own, and its key is not kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairwall.rpc.identity import PARTIES, SERVERS, Credentials, server_name_of, uri_of

_VALID = timedelta(days=30)


def mint(
    run: str, parties: Sequence[str] = PARTIES, *, developers: Sequence[str] = (), valid: timedelta = _VALID
) -> dict[str, Credentials]:
    """Create an authority and one certificate per party, a named developer's as ``developer-<name>``, with P-256 keys.

    ``run``, the run's id or the deployment's name, becomes part of DNS names: lower-case letters, digits and hyphens.
    Named developers of a deployment serve nothing, and only a server's certificate is valid for a server.
    """
    until = datetime.now(UTC) + valid
    authority = RunAuthority.new(run, until)
    minted = {party: authority.issue(run, party, until=until) for party in parties}
    return minted | {f"developer-{name}": authority.issue(run, "developer", name, until=until) for name in developers}


@dataclass(frozen=True)
class RunAuthority:
    """A certificate authority; ``pem`` is its certificate, then any certificates behind it, as the parties get them."""

    pem: str
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey = field(repr=False)

    @classmethod
    def new(cls, run: str, until: datetime) -> Self:
        """Create an authority for a run or a deployment."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = _common_name(f"fairwall {run}")
        certificate = (
            _builder(name, name, key.public_key(), until)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(certificate.public_bytes(serialization.Encoding.PEM).decode(), key)

    @property
    def certificate(self) -> x509.Certificate:
        """The authority's certificate."""
        return x509.load_pem_x509_certificate(self.pem.encode())

    def issue(self, run: str, party: str, name: str = "", *, until: datetime) -> Credentials:
        """Issue a key and a certificate for a party; only a server's certificate is valid for a server."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri_of(run, party, name))]
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if party in SERVERS and not name:
            names.append(x509.DNSName(server_name_of(run, party)))
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        subject = _common_name(f"{party} {name}".strip())
        certificate = (
            _builder(subject, self.certificate.subject, key.public_key(), until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return Credentials(
            run=run,
            party=party,
            authority=self.pem,
            certificate=certificate.public_bytes(serialization.Encoding.PEM).decode(),
            key=key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ).decode(),
        )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, until: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # A clock that is a little behind must still accept the certificate.
        .not_valid_before(datetime.now(UTC) - timedelta(minutes=5))
        .not_valid_after(until)
    )


def _common_name(text: str) -> x509.Name:
    # At most 64 characters; for people only, no program reads it.
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
