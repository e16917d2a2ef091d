"""A signed envelope (DSSE v1): bytes of a type, and one signature of both.

An envelope has one canonical form and is read in no other: with any byte changed, it is another envelope or none. So
base64 must be canonical, an ECDSA signature has the smaller of its two values of s, and the certificate, which is not
itself signed, is named in the payload by its digest (`sim.attestation.statement`). Envelope libraries accept other
forms too, so that most of these checks would still be needed.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairwall.errors import UserError
from fairwall.rpc.identity import Credentials
from sim.verify.signature import SigningKeyError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

PAYLOAD_TYPE = "application/vnd.in-toto+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "fairwall://attestation/audit-account/v1"

_P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


class EnvelopeError(UserError):
    """An invalid envelope, or one with the wrong signer. Its text is one line that says why."""


@dataclass(frozen=True)
class Signer:
    """A signing key, P-256 or Ed25519: that of compliance's certificate, in PEM, or one without certificate ("")."""

    key: Any = field(repr=False)
    certificate: str = ""

    @property
    def described(self) -> dict[str, str]:
        """The statement's description of the signer."""
        if not self.certificate:
            return {"publicKey": fingerprint(self.key.public_key())}
        return {"certificate": _digest_of(_certificate(self.certificate))}


@dataclass(frozen=True)
class OpenedEnvelope:
    """The payload of an envelope whose signature was verified.

    ``described`` is what the statement must say of its signer (`Signer.described`). The certificate is the signer's,
    issued by the reader's authority; None for a key without one.
    """

    payload: bytes
    described: dict[str, str]
    certificate: x509.Certificate | None


def signer_of(credentials: Credentials) -> Signer:
    """Return a signer with the key of a certificate; SigningKeyError if it is neither on P-256 nor Ed25519."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(credentials.key.encode(), None)
    if not _is_known(key.public_key()):
        raise SigningKeyError(
            f"the key of the certificate of {credentials.party} is neither on P-256 nor Ed25519: sign with --key"
        )
    # Written again: a user's file may have other text around its certificate.
    return Signer(key, _pem(_certificate(credentials.certificate)))


def authorities(path: Path) -> list[x509.Certificate]:
    """Read the certificates of authorities that the reader trusts; SigningKeyError if a file has others."""
    from cryptography import x509

    try:
        found = x509.load_pem_x509_certificates(path.read_bytes())
    except OSError as error:
        raise SigningKeyError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, x509.InvalidVersion):
        raise SigningKeyError(f"{path}: no certificate in PEM") from None
    for certificate in found:
        try:
            is_authority = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
        except x509.ExtensionNotFound:
            is_authority = False
        if not is_authority:
            raise SigningKeyError(f"{path}: not an authority's certificate: take authority.pem")
    return found


def sign(payload: bytes, signer: Signer) -> bytes:
    """Return a signed envelope of a statement, one JSON object."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

    signed = _signed_bytes(payload)
    if isinstance(signer.key, ec.EllipticCurvePrivateKey):
        r, s = decode_dss_signature(signer.key.sign(signed, ec.ECDSA(hashes.SHA256())))
        signature = encode_dss_signature(r, min(s, _P256_ORDER - s))
    else:
        signature = signer.key.sign(signed)
    return _written(payload, fingerprint(signer.key.public_key()), signature, signer.certificate)


def open_with_authority(envelope: bytes, trusted: list[x509.Certificate]) -> OpenedEnvelope:
    """Open an envelope signed by a certificate, of any owner and date, of these authorities; else EnvelopeError."""
    payload, keyid, signature, pem = _taken_apart(envelope)
    if not pem:
        raise EnvelopeError("it is signed with a key that has no certificate: check it with --public-key")
    certificate = _certificate(pem)
    if _pem(certificate) != pem:
        raise EnvelopeError("its certificate is not written as it should be")
    if not any(_issued(certificate, authority) for authority in trusted):
        raise EnvelopeError("its certificate is not of this authority: it is another deployment's, or was changed")
    _verify(payload, keyid, signature, certificate.public_key())
    return OpenedEnvelope(payload, {"certificate": _digest_of(certificate)}, certificate)


def open_with_key(envelope: bytes, key: Ed25519PublicKey) -> OpenedEnvelope:
    """Open an envelope signed with a key that the reader knows, whatever key it names; else EnvelopeError."""
    payload, keyid, signature, pem = _taken_apart(envelope)
    if pem:
        raise EnvelopeError("it is signed with a certificate: check it with --authority")
    _verify(payload, keyid, signature, key)
    return OpenedEnvelope(payload, {"publicKey": fingerprint(key)}, None)


def fingerprint(key: Any) -> str:
    """Return the SHA-256 of a public key's SubjectPublicKeyInfo, in hexadecimal."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return hashlib.sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _written(payload: bytes, keyid: str, signature: bytes, pem: str) -> bytes:
    signed = {"keyid": keyid, "sig": base64.b64encode(signature).decode()} | ({"certificate": pem} if pem else {})
    whole = {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [signed],
    }
    return json.dumps(whole, indent=1).encode() + b"\n"


def _taken_apart(envelope: bytes) -> tuple[bytes, str, bytes, str]:
    try:
        whole = json.loads(envelope)
        (signed,) = whole["signatures"]
        parts = (
            base64.b64decode(whole["payload"], validate=True),
            str(signed["keyid"]),
            base64.b64decode(signed["sig"], validate=True),
            str(signed.get("certificate", "")),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, binascii.Error):
        raise EnvelopeError("it is no signed statement: name the page that has the statement beside it") from None
    if _written(*parts) != envelope:
        raise EnvelopeError("it is not written as a signed statement is")
    return parts


def _signed_bytes(payload: bytes) -> bytes:
    """Return the bytes that are signed: DSSE's PAE."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def _verify(payload: bytes, keyid: str, signature: bytes, key: PublicKeyTypes) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

    if not _is_known(key) or keyid != fingerprint(key):
        raise EnvelopeError("it is signed with another key than this one")
    try:
        if isinstance(key, Ed25519PublicKey):
            key.verify(signature, _signed_bytes(payload))
            return
        assert isinstance(key, ec.EllipticCurvePublicKey), "one of the two that are known"
        r, s = decode_dss_signature(signature)
        if encode_dss_signature(r, s) != signature or 2 * s > _P256_ORDER:
            raise InvalidSignature
        key.verify(signature, _signed_bytes(payload), ec.ECDSA(hashes.SHA256()))
    except (InvalidSignature, ValueError):
        raise EnvelopeError("its signature is not of this statement: one of them was changed") from None


def _is_known(key: object) -> bool:
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    if isinstance(key, ec.EllipticCurvePublicKey):
        return isinstance(key.curve, ec.SECP256R1)
    return isinstance(key, Ed25519PublicKey)


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    from cryptography.exceptions import InvalidSignature

    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _certificate(pem: str) -> x509.Certificate:
    from cryptography import x509
    from cryptography.utils import CryptographyDeprecationWarning

    try:
        # The library still reads, with a warning, e.g. serial numbers below 0, which no authority of ours ever wrote.
        with warnings.catch_warnings():
            warnings.simplefilter("error", CryptographyDeprecationWarning)
            return x509.load_pem_x509_certificate(pem.encode())
    except (ValueError, x509.InvalidVersion, CryptographyDeprecationWarning):
        raise EnvelopeError("its certificate cannot be read as one: the statement was changed") from None


def _pem(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM).decode()


def _digest_of(certificate: x509.Certificate) -> str:
    from cryptography.hazmat.primitives import hashes

    return certificate.fingerprint(hashes.SHA256()).hex()
