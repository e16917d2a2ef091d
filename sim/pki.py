"""The certificates of one run: an authority minted for it alone, whose key is dropped once every party has its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairwall.rpc.identity import PARTIES, SERVERS, Credentials, server_name_of, uri_of

_VALID = timedelta(days=30)


def mint(run: str, parties: Sequence[str] = PARTIES) -> dict[str, Credentials]:
    """Mint an authority and one certificate a party.

    Parameters
    ----------
    run : str
        The run's id; it becomes part of DNS names: lower-case letters, digits and hyphens.
    parties : sequence of str

    Returns
    -------
    dict of str to Credentials
        By party. Elliptic-curve keys on P-256. Only a server's certificate may stand for a server.
    """
    authority_key = ec.generate_private_key(ec.SECP256R1())
    # A common name has at most 64 characters; it tells people what they look at, and programs nothing.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"fairwall {run}"[:64])])
    authority = (
        _builder(name, name, authority_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .sign(authority_key, hashes.SHA256())
    )
    authority_pem = authority.public_bytes(serialization.Encoding.PEM).decode()
    return {party: _issue(run, party, name, authority_key, authority_pem) for party in parties}


def _issue(
    run: str, party: str, issuer: x509.Name, authority_key: ec.EllipticCurvePrivateKey, authority_pem: str
) -> Credentials:
    key = ec.generate_private_key(ec.SECP256R1())
    names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri_of(run, party))]
    uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if party in SERVERS:
        names.append(x509.DNSName(server_name_of(run, party)))
        uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, party)])
    certificate = (
        _builder(subject, issuer, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(uses), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(authority_key, hashes.SHA256())
    )
    return Credentials(
        run=run,
        party=party,
        authority=authority_pem,
        certificate=certificate.public_bytes(serialization.Encoding.PEM).decode(),
        key=key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        ).decode(),
    )


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        # A clock that is a little behind must still find the certificate valid.
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + _VALID)
    )


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
