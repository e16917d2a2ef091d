"""The signature of ``result.json``, and thereby of every file whose digest is in it.

The user keeps the key elsewhere: who can write every file of a run's folder still cannot replace the run. The signature
is Ed25519's 64 bytes, which other programs can check too: ``openssl pkeyutl -verify -rawin``. A ledger's page is signed
in an envelope instead, which names its signer and suits programs for in-toto statements.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from fairwall.errors import UserError
from sim.verify.finding import NoRun, VerifyFinding
from sim.verify.run_files import result_of

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

_RESULT, _SIGNATURE = "result.json", "result.json.sig"


class SigningKeyError(UserError):
    """A key that cannot be used. Its text is one line with the reason."""


def require_sealable(folder: Path, key: Path) -> None:
    """Raise NoRun if the run has not ended, and SigningKeyError if the key is in the run's folder."""
    result = result_of(folder)
    if result is None:
        raise NoRun(f"{folder}: not a run's folder: it has no {_RESULT}")
    if not result.get("files"):
        raise NoRun(f"{folder}: its {_RESULT} says not how its files ended: the run is going on, or was killed")
    if key.resolve().is_relative_to(folder.resolve()):
        raise SigningKeyError(f"{key}: inside the run's folder, which it is to protect: keep it elsewhere")


def new_key(path: Path) -> Path:
    """Create a private key that only the owner can read, and the public key beside it; return the latter's path.

    The public key's name has ``.pub`` added. Raises SigningKeyError if either file exists.
    """
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, public = Ed25519PrivateKey.generate(), path.with_name(f"{path.name}.pub")
    for place in (path, public):
        if place.exists():
            raise SigningKeyError(f"{place}: is there already; a key is never overwritten")
    private_text = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption())
    public_text = key.public_key().public_bytes(form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo)
    for place, text, mode in ((path, private_text, 0o600), (public, public_text, 0o644)):
        # Created with its mode: at no moment can others read the key.
        with os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(text)
    return public


def sign(folder: Path, key: Path) -> Path:
    """Sign the result of a run that has ended; return the path of the signature, in the folder.

    ``key`` is an Ed25519 private key in PEM without a password, such as ``openssl genpkey -algorithm ed25519`` writes.
    """
    require_sealable(folder, key)
    private = private_key(key)
    path = folder / _SIGNATURE
    path.write_bytes(private.sign((folder / _RESULT).read_bytes()))
    return path


def private_key(path: Path) -> Ed25519PrivateKey:
    """Return an Ed25519 private key in PEM; SigningKeyError if it has a password, or others can read the file."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    text = _read(path)
    if path.stat().st_mode & 0o077:
        raise SigningKeyError(f"{path}: others than its owner can use it; chmod 600 it")
    try:
        private = load_pem_private_key(text, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        private = None
    if not isinstance(private, Ed25519PrivateKey):
        raise SigningKeyError(f"{path}: no Ed25519 private key in PEM, or under a password")
    return private


def public_key(path: Path) -> Ed25519PublicKey:
    """Return an Ed25519 public key, in PEM; else raise SigningKeyError."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(_read(path))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise SigningKeyError(f"{path}: no Ed25519 public key in PEM")
    return key


def wrong_signature(folder: Path, public: Path | None, notes: list[str]) -> Iterator[VerifyFinding]:
    """Check the signature of a run's result by a public key in PEM; without one, note an unchecked signature."""
    from cryptography.exceptions import InvalidSignature

    path = folder / _SIGNATURE
    if public is None:
        if path.exists():
            notes.append(f"not checked: {_SIGNATURE}, since no public key was given (--public-key)")
        return
    key = public_key(public)
    try:
        key.verify(path.read_bytes(), (folder / _RESULT).read_bytes())
    except FileNotFoundError:
        yield VerifyFinding("seal", _SIGNATURE, "is missing: the run was not sealed")
    except InvalidSignature:
        yield VerifyFinding("seal", _SIGNATURE, f"is not this key's signature of {_RESULT} as it is now")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SigningKeyError(f"{path}: cannot be read: {error.strerror}") from None
