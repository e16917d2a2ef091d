"""The list of certificates that hold no longer: an X.509 CRL that the callers' authority has signed."""

from __future__ import annotations

import functools
import logging
import os
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from fairwall.errors import UserError

if TYPE_CHECKING:
    from cryptography import x509

LOG = logging.getLogger(__name__)


class RevokedError(UserError):
    """A list that cannot be relied on: nobody knows who may call. The text is one line that names the file."""


class Revoked:
    """The list in a file, read again whenever the file has changed.

    Where there was no file from the beginning, nothing is revoked.

    Parameters
    ----------
    path : Path
        PEM; to be replaced at once, and never written to in place.
    authority : str
        The certificates that may have signed it, PEM.
    before : Revoked, optional
        What this one takes the place of: where that had a file, this must have one.

    Raises
    ------
    RevokedError
        As `holds`.
    """

    def __init__(self, path: Path, authority: str, before: Revoked | None = None) -> None:
        self._path = path
        self._authority = authority
        self._lock = threading.Lock()
        self._begun: bool = path.exists() or (before is not None and before._begun)
        self._stamp: tuple[int, ...] | None = ()
        self._until: datetime | None = None
        self._serials: frozenset[int] = frozenset()
        self._problem = ""
        self.holds(b"")

    def holds(self, certificate: bytes) -> bool:
        """Say whether a certificate (PEM; none, if empty) is on the list, as the file is now.

        Raises
        ------
        RevokedError
            If the file is gone, cannot be read, is no list that the authority has signed, or should have been replaced
            by a newer one. The log gets a line when that begins and when it is over.
        """
        with self._lock:
            self._look()
            if self._problem:
                raise RevokedError(self._problem)
            revoked = self._serials
        return bool(revoked and certificate) and _serial(certificate) in revoked

    def _look(self) -> None:
        before, stamp = self._problem, _stamp(self._path)
        self._begun |= stamp is not None
        # What could not be read, for want of a free descriptor perhaps, is tried again.
        if self._begun and (stamp != self._stamp or before):
            self._stamp, self._problem = stamp, ""
            try:
                found = read(self._path, self._authority)
            except RevokedError as error:
                self._problem = str(error)
            else:
                self._serials = frozenset(each.serial_number for each in found)
                self._until = found.next_update_utc
        if not self._problem and self._until and self._until < datetime.now(UTC):
            self._problem = f"{self._path}: too old: a newer list was due at {self._until:%Y-%m-%d %H:%M} UTC"
        if self._problem and not before:
            LOG.error("nobody is let in: %s", self._problem)
        if before and not self._problem:
            LOG.info("%s: can be relied on again", self._path)


def read(path: Path, authority: str) -> x509.CertificateRevocationList:
    """Read a list, and check who signed it.

    Raises
    ------
    RevokedError
        If it cannot be read, or none of the authority's certificates signed it.
    """
    from cryptography import x509

    try:
        found = x509.load_pem_x509_crl(path.read_bytes())
        signers = x509.load_pem_x509_certificates(authority.encode())
        signed = any(
            found.issuer == signer.subject and found.is_signature_valid(signer.public_key())  # type: ignore[arg-type]
            for signer in signers
        )
    except OSError as error:
        raise RevokedError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError):
        raise RevokedError(f"{path}: not a list of revoked certificates (an X.509 CRL in PEM)") from None
    if not signed:
        raise RevokedError(f"{path}: not signed by the authority of authority.pem")
    if any(extension.critical for extension in found.extensions):
        # Such as a list of changes alone, which leaves out most of what is revoked.
        raise RevokedError(f"{path}: not a plain list of revoked certificates: it has critical extensions")
    return found


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        seen = os.stat(path)
    except OSError:
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


@functools.lru_cache(1024)
def _serial(pem: bytes) -> int:
    from cryptography import x509

    return x509.load_pem_x509_certificate(pem).serial_number
