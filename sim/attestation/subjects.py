"""The digest of a batch's predictions, which anybody who has them can compute.

It is BLAKE3 of the request's header, an ``AuditHeader`` of the protocol serialised with its fields in numeric order,
followed by the predictions as float64, little-endian, model by model. The page shows the header's values but for four
that the developer knows: the predictions' type on the wire (float64 by `AuditClient`), the threshold, if any, the
requested epsilon, if less was charged, and the digest of the rows, if rows were named by ids: the predictions are then
in the order of the ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fairwall.compliance.v1.audit_service_pb2 import AuditHeader
from fairwall.errors import UserError
from fairwall.rpc import arrays
from fairwall.wire.audits import audit_digest
from fairwall.wire.metrics import number_of

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
