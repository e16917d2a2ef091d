"""Issue certificates for a test: a deployment's own, and others that an honest authority would never sign."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from fairwall.rpc.identity import Credentials, server_name_of, uri_of

_PEM = serialization.Encoding.PEM
_DAYS = 30


class LaxAuthority:
    """An authority that signs any certificate. Nobody reads its common name."""

    def __init__(self, name: str) -> None:
        self._name = _common_name(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        certificate = (
            self._builder(self._name, self._key.public_key(), timedelta(days=_DAYS))
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.pem = certificate.public_bytes(_PEM).decode()

    def issue(
        self,
        *uris: str,
        server: str = "",
        serves: bool = True,
        common_name: str = "under test",
        valid: timedelta = timedelta(days=_DAYS),
        begins: timedelta = timedelta(days=-2),
    ) -> Credentials:
        """Sign a certificate.

        Its SAN URIs name it as a caller. Its SAN DNS name is `server`; it may be used by that server if it `serves`.
        `valid` is the time from now until it expires (negative: it has expired), and `begins` the time from now until
        it is valid.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.UniformResourceIdentifier(uri) for uri in uris]
        uses = [ExtendedKeyUsageOID.CLIENT_AUTH]
        if server:
            names.append(x509.DNSName(server))
        if server and serves:
            uses.append(ExtendedKeyUsageOID.SERVER_AUTH)
        builder = (
            self._builder(_common_name(common_name), key.public_key(), valid, begins)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return Credentials(
            run="",
            party="",
            authority=self.pem,
            certificate=builder.sign(self._key, hashes.SHA256()).public_bytes(_PEM).decode(),
            key=key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()).decode(),
        )

    def party(
        self, run: str, party: str, name: str = "", *, serves: bool = False, valid: timedelta = timedelta(days=_DAYS)
    ) -> Credentials:
        """Sign the certificate of a party of a run."""
        return self.issue(uri_of(run, party, name), server=server_name_of(run, party) if serves else "", valid=valid)

    def revoked(
        self,
        *revoked: Credentials,
        begins: timedelta = timedelta(days=-2),
        until: timedelta = timedelta(days=_DAYS),
        changes: bool = False,
    ) -> str:
        """Sign a list of revoked certificates, PEM; with `changes` it is marked as a list of changes only."""
        now = datetime.now(UTC)
        builder = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(self._name)
            .last_update(now + begins)
            .next_update(now + until)
        )
        for each in revoked:
            serial = x509.load_pem_x509_certificate(each.certificate.encode()).serial_number
            entry = x509.RevokedCertificateBuilder().serial_number(serial).revocation_date(now + begins).build()
            builder = builder.add_revoked_certificate(entry)
        if changes:
            builder = builder.add_extension(x509.DeltaCRLIndicator(1), critical=True)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(_PEM).decode()

    def _builder(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePublicKey,
        valid: timedelta,
        begins: timedelta = timedelta(days=-2),
    ) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now + begins)
            .not_valid_after(now + valid)
        )


def write(folder: Path, credentials: Credentials) -> None:
    """Write credentials as a party gets them: three files, the key readable by its owner alone."""
    folder.mkdir(parents=True, mode=0o700)
    for name in ("authority", "certificate", "key"):
        descriptor = os.open(folder / f"{name}.pem", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(getattr(credentials, name))


def read(folder: Path) -> Credentials:
    """Read credentials without checking their names, which may be nobody's."""
    authority, certificate, key = (
        (folder / f"{name}.pem").read_text(encoding="ascii") for name in ("authority", "certificate", "key")
    )
    return Credentials("", "", authority, certificate, key)


def _common_name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])
