"""The offline check of a page and its statement, with the reader's copy of an authority or a public key."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairwall.compliance.v1.audit_service_pb2 import AuditHeader
from fairwall.errors import UserError
from fairwall.rpc import arrays
from fairwall.rpc.identity import uri_of
from fairwall.wire.audits import audit_digest
from fairwall.wire.metrics import number_of
from sim.attestation.envelope import (
    PREDICATE_TYPE,
    STATEMENT_TYPE,
    EnvelopeError,
    OpenedEnvelope,
    authorities,
    open_with_authority,
    open_with_key,
)
from sim.verify.signature import public_key

if TYPE_CHECKING:
    from cryptography import x509

PAGE, STATEMENT, RATES = ".html", ".intoto.json", ".rates.csv"
"""File name endings of a page, its statement, and its table of rates by group, which may be absent."""

_BYTES_MAX = 64 << 20


class NotFound(UserError):
    """A file to check that is absent or unreadable. Its text is one line."""


@dataclass(frozen=True)
class Checked:
    """The signed account, of `sim.attestation.statement.account_of`, and notes for its reader."""

    account: dict[str, Any]
    notes: tuple[str, ...]


def statement_of(page: Path) -> Path:
    """Return the path of a page's statement; NotFound if the page's name does not end as one."""
    if page.suffix != PAGE:
        raise NotFound(f"{page}: the page's name must end with {PAGE}")
    return page.with_name(page.name.removesuffix(PAGE) + STATEMENT)


def rates_beside(page: Path) -> Path:
    """Return the path of a page's table of rates by group."""
    return page.with_suffix(RATES)


def check(file: Path, *, authority: Path | None = None, key: Path | None = None) -> Checked:
    """Check a page and its statement, and the table of rates by group if it is there.

    ``file`` is the page or the statement; the other is beside it. ``authority`` is the deployment's ``authority.pem``
    from the reader's own credentials, or ``key`` compliance's public key, if it signs with a key that has no
    certificate.
    """
    page = file
    if file.name.endswith(STATEMENT):
        page = file.with_name(file.name.removesuffix(STATEMENT) + PAGE)
    envelope, shown = _read(statement_of(page)), _read(page)
    if authority is not None:
        opened = open_with_authority(envelope, authorities(authority))
    else:
        assert key is not None, "one of the two"
        opened = open_with_key(envelope, public_key(key))
    if opened.certificate is not None:
        _check_is_compliance(opened.certificate)
    account, at, digests = _stated(opened)
    if opened.certificate is not None:
        _check_held(opened.certificate, account["deployment"], at)
    _check_is_signed("the page", shown, digests[0])
    notes, table = _notes(account, opened.certificate), rates_beside(page)
    if len(digests) > 1 and table.exists():
        _check_is_signed(table.name, _read(table), digests[1])
    elif len(digests) > 1:
        notes.append(f"{table.name}, the table of rates by group that was signed with the page, is not here")
    return Checked(account, tuple(notes))


def _stated(opened: OpenedEnvelope) -> tuple[dict[str, Any], datetime, list[object]]:
    """Read the account, its time, and the files' digests; the payload may be anything that was signed."""
    try:
        stated = json.loads(opened.payload)
        account: dict[str, Any] = stated["predicate"]
        types, signer = (stated["_type"], stated["predicateType"]), account["signer"]
        at, subjects = datetime.fromisoformat(account["signedAt"]).astimezone(UTC), stated["subject"]
        digests = [subjects[0]["digest"], *(one["digest"] for one in subjects[1:2] if "sha256" in one["digest"])]
    except (ArithmeticError, AttributeError, ValueError, KeyError, TypeError, IndexError, RecursionError):
        raise EnvelopeError("what is signed is no statement about a ledger") from None
    if types != (STATEMENT_TYPE, PREDICATE_TYPE) or not {"deployment", "only", "refusals"} <= account.keys():
        raise EnvelopeError(
            "what is signed is another kind of statement than a ledger's: was it made by another version?"
        )
    if signer != opened.described:
        raise EnvelopeError("the certificate or key beside the statement is not the one that it names")
    return account, at, digests


def _check_is_signed(name: str, file: bytes, digest: object) -> None:
    if digest != {"sha256": hashlib.sha256(file).hexdigest()}:
        raise EnvelopeError(f"{name} is not the one that was signed with this statement")


def _check_is_compliance(certificate: x509.Certificate) -> None:
    """Refuse any other signer before reading: developers have certificates of the same authority."""
    names = _names(certificate)
    if len(names) != 1 or not names[0].endswith("/compliance"):
        raise EnvelopeError(f"its certificate is {' and '.join(names) or 'nobody'}'s, and not compliance's")


def _check_held(certificate: x509.Certificate, deployment: str, at: datetime) -> None:
    if _names(certificate) != [uri_of(deployment, "compliance")]:
        raise EnvelopeError(f"its certificate is {_names(certificate)[0]}'s, and not that of {deployment}")
    if not certificate.not_valid_before_utc <= at <= certificate.not_valid_after_utc:
        raise EnvelopeError(f"its certificate did not hold when it was signed, at {at:%Y-%m-%d %H:%M} UTC")


def _names(certificate: x509.Certificate) -> list[str]:
    from cryptography import x509

    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return []
    return [uri for uri in names.get_values_for_type(x509.UniformResourceIdentifier) if uri.startswith("fairwall:")]


def _notes(account: dict[str, Any], certificate: x509.Certificate | None) -> list[str]:
    notes = []
    if certificate is not None and certificate.not_valid_after_utc < datetime.now(UTC):
        notes.append(
            f"the signer's certificate ended at {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC, after the "
            "page was signed; when that was, is compliance's word"
        )
    if any(account["only"].values()):
        notes.append("the page is about a part of the ledger, as it says")
    if account["refusals"] is None:
        notes.append("refused calls were not counted: no log was given")
    return notes


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            text = file.read(_BYTES_MAX + 1)
    except OSError as error:
        raise NotFound(f"{path}: cannot be read: {error.strerror}") from None
    if len(text) > _BYTES_MAX:
        raise EnvelopeError(f"{path.name} is larger than {_BYTES_MAX >> 20} MiB")
    return text


_SENT_AS = (np.float64, np.float32, np.uint8)


class PredictionsError(UserError):
    """A file without valid predictions. Its text is one line."""


def request_digest(
    predictions: ArrayLike,
    *,
    dataset: str,
    request: str,
    metric: str,
    epsilon: float,
    threshold: float | None = None,
    rows_digest: bytes = b"",
    by: str = "",
    sent_as: type[np.float64 | np.float32 | np.uint8] = np.float64,
) -> str:
    """Return the digest, in hexadecimal, that names a batch among a statement's subjects.

    ``predictions``, of shape (people,) or (models, people), epsilon, threshold and ``rows_digest`` are as sent, the
    last empty where rows were not named by ids; ``by`` is the column requested; ``sent_as`` is the type on the wire.

    It is BLAKE3 of the request's header, an ``AuditHeader`` of the protocol serialised with its fields in numeric
    order, followed by the predictions as float64, little-endian, model by model. The page shows the header's values but
    for four that the developer knows: the predictions' type on the wire (float64 by `AuditClient`), the threshold, if
    any, the requested epsilon, if less was charged, and the digest of the rows, if rows were named by ids: the
    predictions are then in the order of the ids.
    """
    batch = np.atleast_2d(np.asarray(predictions)).astype(sent_as)
    header = AuditHeader(
        request_id=request,
        deal_id=dataset,
        metric=number_of(metric),
        epsilon=epsilon,
        predictions=arrays.header_of(batch),
        threshold=threshold,
        rows_digest=rows_digest,
        by=by,
    )
    return audit_digest(header, np.ascontiguousarray(batch, "<f8")).hex()


def read(path: Path) -> NDArray[np.generic]:
    """Read predictions from a ``.npy`` file; PredictionsError if it has none."""
    try:
        found = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        why = getattr(error, "strerror", None) or "no array as numpy.save writes it"
        raise PredictionsError(f"{path}: cannot be read: {why}") from None
    if not isinstance(found, np.ndarray) or found.ndim not in (1, 2) or found.dtype.kind not in "fiub":
        raise PredictionsError(
            f"{path}: not numbers of the shape (people,) or (models, people); save what was asked, as by numpy.save"
        )
    return found


def models_in(predictions: NDArray[np.generic]) -> int:
    """Return the number of models in a batch."""
    return len(np.atleast_2d(predictions))


def asked_about(
    predictions: NDArray[np.generic],
    audits: Sequence[Mapping[str, Any]],
    *,
    epsilon: float | None = None,
    threshold: float | None = None,
    rows_digest: bytes = b"",
) -> list[Mapping[str, Any]]:
    """Return the audits of an account (`sim.attestation.statement.account_of`) that were about these predictions.

    ``predictions`` has shape (people,) or (models, people); ``epsilon`` is the requested one, if less was charged;
    ``threshold`` and ``rows_digest`` are as sent: without one, only audits without one match.
    """
    models = models_in(predictions)
    exactly = [kind for kind in _SENT_AS if np.array_equal(predictions.astype(kind), predictions)]
    return [
        audit
        for audit in audits
        if len(audit["models"]) == models
        and any(
            audit["digest"]
            == request_digest(
                predictions,
                dataset=audit["dataset"],
                request=audit["request"],
                metric=audit["metric"],
                epsilon=float(audit["epsilon"]) if epsilon is None else epsilon,
                threshold=threshold,
                rows_digest=rows_digest,
                by=named,
                sent_as=kind,
            )
            for kind in exactly
            for named in {"", audit.get("by") or ""}  # a request without a column uses the first
        )
    ]
