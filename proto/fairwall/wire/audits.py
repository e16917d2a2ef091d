"""What a request asks, as one digest: compliance keeps it, and whoever sent the request can compute it."""

from __future__ import annotations

import numpy as np
from blake3 import blake3
from numpy.typing import NDArray

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1 import group_service_pb2 as groups

ID_DIGITS = 32
"""Of a digest in a request id: 128 bits, so that no two questions have the same id by chance."""

_AT_ONCE_BYTES = 1 << 20
"""Up to here one thread digests a batch sooner than several would have begun."""


def audit_digest(header: audit.AuditHeader | audit.AuditModelsRequest, predictions: NDArray[np.float64]) -> bytes:
    """Stand for everything that a request asks: what its id may be used for.

    The two kinds of request never serialise alike: field 5 is a message in the one and a number above 0 in the other.

    Predictions, shape (models, people), are contiguous.
    """
    return _digest(header.SerializeToString(deterministic=True), predictions)


def by_group_digest(
    header: groups.ByGroupHeader, terms: groups.GetGroupTermsResponse, predictions: NDArray[np.float64]
) -> bytes:
    """Stand for everything that a request for counts by group asks: among other values of an attribute it is another.

    What is left of a budget is no part of it. Predictions, shape (models, people), are contiguous.
    """
    policy = groups.GetGroupTermsResponse()
    policy.CopyFrom(terms)
    for name in ("epsilon", "epsilon_remaining"):
        policy.ClearField(name)
    asked = (message.SerializeToString(deterministic=True) for message in (header, policy))
    return _digest(b"by group" + b"".join(asked), predictions)


def _digest(asked: bytes, predictions: NDArray[np.float64]) -> bytes:
    threads = 1 if predictions.nbytes <= _AT_ONCE_BYTES else blake3.AUTO
    return blake3(asked, max_threads=threads).update(predictions.data.cast("B")).digest()
