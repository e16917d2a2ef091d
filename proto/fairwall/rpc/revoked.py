"""The list of revoked certificates: an X.509 CRL signed by the callers' authority."""

from __future__ import annotations

import functools
import logging
import os
import re
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from fairwall.errors import UserError
from fairwall.files import require_end

if TYPE_CHECKING:
    from cryptography import x509

LOG = logging.getLogger(__name__)


_ONE_LIST = re.compile(rb"\s*-----BEGIN X509 CRL-----[^-]+-----END X509 CRL-----\s*")

_HARMLESS = frozenset({"2.5.29.18", "2.5.29.20", "2.5.29.35", "1.3.6.1.5.5.7.1.1"})
"""Extensions that leave a list complete: its number, the issuer's other names and key, a pointer to the issuer. Others
may mean that revoked certificates are missing: that the list has changes alone or is a part of several, that newer
changes are elsewhere, or something unknown here."""

_AHEAD = timedelta(minutes=5)
"""Tolerated lead of the clock of a list's signer."""


class RevokedError(UserError):
    """A list that cannot be relied on: it is unknown who may call. The text is one line that names the file."""


class Revoked:
    """The list in a file, read again whenever the file has changed.

    Without a file from the beginning, nothing is revoked. RevokedError as `holds`.

    Parameters
    ----------
    path : PEM; to be replaced at once, and never written to in place.
    authority : the certificates that may have signed the list, PEM.
    before : the list that this one replaces: if that had a file, this one must too.
    """

    def __init__(self, path: Path, authority: str, before: Revoked | None = None) -> None:
        self._path = path
        self._authority = authority
        self._lock = threading.Lock()
        self._begun: bool = path.exists() or (before is not None and before._begun)
        self._stamp: tuple[int, ...] | None = ()
        self._held: datetime = datetime.min.replace(tzinfo=UTC) if before is None else before._held
        self._until = datetime.max.replace(tzinfo=UTC)
        self._signer = ""
        self._serials: frozenset[int] | None = None
        self._problem = ""
        self.holds(b"")

    def holds(self, certificate: bytes) -> bool:
        """Return whether a certificate (PEM; none, if empty) is on the list now, or not by the list's signer.

        RevokedError if the file is gone, unreadable, not one plain list signed by the authority, or past the date of
        the next list. The log gets a line when that begins and when it is over.
        """
        with self._lock:
            self._look()
            if self._problem:
                raise RevokedError(self._problem)
            revoked, signer = self._serials, self._signer
        if revoked is None or not certificate:
            return False
        serial = _serial(certificate, signer)
        return serial is None or serial in revoked

    def _look(self) -> None:
        before, stamp = self._problem, _stamp(self._path)
        self._begun |= stamp is not None
        # A list that could not be read, for want of a free descriptor perhaps, is read again.
        if self._begun and (stamp != self._stamp or before):
            self._stamp, self._problem = stamp, ""
            try:
                found, self._signer = signed(self._path, self._authority)
            except RevokedError as error:
                self._problem = str(error)
            else:
                self._serials = frozenset(each.serial_number for each in found)
                self._until = found.next_update_utc or datetime.max.replace(tzinfo=UTC)
                begins = found.last_update_utc
                # A list that was valid stays valid if the clock is set back, also after a reload.
                if begins > max(datetime.now(UTC) + _AHEAD, self._held):
                    self._problem = f"{self._path}: not valid yet: it begins at {begins:%Y-%m-%d %H:%M} UTC"
                else:
                    self._held = max(begins, self._held)
        if not self._problem and self._serials is not None and self._until < datetime.now(UTC):
            self._problem = f"{self._path}: too old: a newer list was due at {self._until:%Y-%m-%d %H:%M} UTC"
        if self._problem and not before:
            LOG.error("nobody is let in: %s", self._problem)
        if before and not self._problem:
            LOG.info("%s: can be relied on again", self._path)


def read(path: Path, authority: str) -> x509.CertificateRevocationList:
    """Read a list as `signed` does."""
    return signed(path, authority)[0]


def signed(path: Path, authority: str) -> tuple[x509.CertificateRevocationList, str]:
    """Return a list that covers all certificates of its signer, and the signer, PEM; RevokedError otherwise."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    try:
        require_end(path)
        text = path.read_bytes()
        found = x509.load_pem_x509_crl(text)
        unlike = _unlike_a_plain_list(found)
        signers = x509.load_pem_x509_certificates(authority.encode())
        by = [
            signer.public_bytes(Encoding.PEM).decode()
            for signer in signers
            if found.issuer == signer.subject and found.is_signature_valid(signer.public_key())  # type: ignore[arg-type]
        ]
    except OSError as error:
        raise RevokedError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, TypeError):
        raise RevokedError(f"{path}: not a list of revoked certificates (an X.509 CRL in PEM)") from None
    if not _ONE_LIST.fullmatch(text):
        raise RevokedError(f"{path}: must hold one list of revoked certificates and nothing else")
    if not by:
        raise RevokedError(f"{path}: not signed by the authority of authority.pem")
    if unlike:
        raise RevokedError(f"{path}: not a plain list of all revoked certificates: it has the extension {unlike}")
    return found, by[0]


def _unlike_a_plain_list(revocations: x509.CertificateRevocationList) -> str:
    """Return an extension by which a list may leave out revoked certificates; empty if there is none."""
    from cryptography import x509

    for extension in revocations.extensions:
        if extension.critical or extension.oid.dotted_string not in _HARMLESS:
            return str(extension.oid.dotted_string)
    for each in revocations:
        for entry in each.extensions:
            is_taken_off = entry.value == x509.CRLReason(x509.ReasonFlags.remove_from_crl)
            if entry.critical or is_taken_off or isinstance(entry.value, x509.CertificateIssuer):
                return str(entry.oid.dotted_string)
    return ""


def _stamp(path: Path) -> tuple[int, ...] | None:
    try:
        seen = os.stat(path)
    except (OSError, ValueError):
        return None
    return seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


@functools.lru_cache(1024)
def _serial(pem: bytes, signer: str) -> int | None:
    """Return a certificate's number; None if another than the signer issued it."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature

    certificate = x509.load_pem_x509_certificate(pem)
    try:
        certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(signer.encode()))
    except (ValueError, TypeError, InvalidSignature):
        return None
    return certificate.serial_number
