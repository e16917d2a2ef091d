"""Certificates of a run or a deployment: an authority minted for it alone, its key dropped once all have theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairwall.rpc.identity import PARTIES, SERVERS, Credentials, server_name_of, uri_of

_VALID = timedelta(days=30)


def mint(
    run: str, parties: Sequence[str] = PARTIES, *, developers: Sequence[str] = (), valid: timedelta = _VALID
) -> dict[str, Credentials]:
    """Mint an authority and one certificate a party.

    Parameters
    ----------
    run : str
        The run's id, or the deployment's name; it becomes part of DNS names: lower-case letters, digits and hyphens.
    parties : sequence of str
    developers : sequence of str
        The names of a deployment's developers. They serve nothing.
    valid : timedelta
        How long the certificates hold.

    Returns
    -------
    dict of str to Credentials
        By party, a named developer's as ``developer-<name>``. Elliptic-curve keys on P-256. Only a server's
        certificate may stand for a server.
    """
    authority = _Authority(run, datetime.now(UTC) + valid)
    minted = {party: authority.issue(party, serves=party in SERVERS) for party in parties}
    return minted | {f"developer-{name}": authority.issue("developer", name) for name in developers}


@dataclass(frozen=True)
class _Authority:
    """The one whose word both sides of a connection trust. Its key lives as long as this object."""

    run: str
    until: datetime
    key: ec.EllipticCurvePrivateKey = field(
        default_factory=lambda: ec.generate_private_key(ec.SECP256R1()), init=False, repr=False
    )

    def issue(self, party: str, name: str = "", *, serves: bool = False) -> Credentials:
        """Make a key, and a certificate that says whose it is."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri_of(self.run, party, name))]
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if serves:
            names.append(x509.DNSName(server_name_of(self.run, party)))
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        certificate = (
            self._builder(_common_name(f"{party} {name}".strip()), key.public_key())
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        return Credentials(
            run=self.run,
            party=party,
            authority=self._pem,
            certificate=certificate.public_bytes(serialization.Encoding.PEM).decode(),
            key=key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            ).decode(),
        )

    @property
    def _name(self) -> x509.Name:
        return _common_name(f"fairwall {self.run}")

    @cached_property
    def _pem(self) -> str:
        certificate = (
            self._builder(self._name, self.key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(self.key, hashes.SHA256())
        )
        return certificate.public_bytes(serialization.Encoding.PEM).decode()

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            # A clock that is a little behind must still find the certificate valid.
            .not_valid_before(datetime.now(UTC) - timedelta(minutes=5))
            .not_valid_after(self.until)
        )


def _common_name(text: str) -> x509.Name:
    # At most 64 characters; it tells people what they look at, and programs nothing.
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
