"""What a request for an audit asks, as one digest: compliance keeps it, and whoever sent the request can compute it."""

from __future__ import annotations

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from fairwall.compliance.v1 import audit_service_pb2 as audit

_AT_ONCE_BYTES = 1 << 20
"""Up to here one thread digests a batch sooner than several would have begun."""


def audit_digest(header: audit.AuditHeader | audit.AuditModelsRequest, predictions: NDArray[np.float64]) -> bytes:
    """Stand for everything that a request asks: what its id may be used for.

    The two kinds of request never serialise alike: field 5 is a message in the one and a number above 0 in the other.

    Parameters
    ----------
    header : AuditHeader or AuditModelsRequest
    predictions : ndarray, shape (models, people)
        Contiguous.
    """
    threads = 1 if predictions.nbytes <= _AT_ONCE_BYTES else blake3.AUTO
    asked = blake3(header.SerializeToString(deterministic=True), max_threads=threads)
    return asked.update(predictions.data.cast("B")).digest()
