"""What a request asks, as one digest: compliance keeps it, and whoever sent the request can compute it."""

from __future__ import annotations

import copy
from collections.abc import Iterable

import numpy as np
from blake3 import blake3
from google.protobuf.message import Message
from numpy.typing import NDArray

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1 import group_service_pb2 as groups
from fairwall.rpc.memory import let_go
from fairwall.wire.v1 import array_pb2

ID_DIGITS = 32
"""Of a digest in a request id: 128 bits, so that no two questions have the same id by chance."""

Predictions = NDArray[np.generic] | Iterable[NDArray[np.generic]]
"""Of shape (models, people), whole or some models at a time."""

_AT_ONCE_BYTES = 1 << 20
"""Up to here one thread digests a batch sooner than several would have begun."""

_PIECE = 1 << 21
"""So many predictions at a time are numbers of float64, and digested by several threads."""


def audit_digest(
    header: audit.AuditHeader | audit.AuditModelsRequest,
    predictions: Predictions,
) -> bytes:
    """Stand for everything that a request asks: what its id may be used for.

    The two kinds of request never serialise alike: field 5 is a message in the one and a number above 0 in the other.

    It is the numbers that count, whatever type predictions travel as.
    """
    return _digest(_of_numbers(header).SerializeToString(deterministic=True), predictions)


def table_digest(request: Message, content: bytes) -> bytes:
    """Stand for everything that a request about a table asks, given a digest of the table's rows as they are."""
    return blake3(b"table" + content + request.SerializeToString(deterministic=True)).digest()


def sealed_digest(header: audit.AuditSealedHeader, models: Iterable[bytes]) -> bytes:
    """Stand for everything that a request about models asks that are handed over: the files, whatever they score."""
    content = b"".join(blake3(model).digest() for model in models)
    return blake3(b"sealed" + content + header.SerializeToString(deterministic=True)).digest()


def by_group_digest(
    header: groups.ByGroupHeader,
    terms: groups.GetGroupTermsResponse,
    predictions: Predictions,
) -> bytes:
    """Stand for everything that a request for counts by group asks: among other values of an attribute it is another.

    What is left of a budget is no part of it, nor the type of predictions.
    """
    policy = groups.GetGroupTermsResponse()
    policy.CopyFrom(terms)
    for name in ("epsilon", "epsilon_remaining"):
        policy.ClearField(name)
    asked = (message.SerializeToString(deterministic=True) for message in (_of_numbers(header), policy))
    return _digest(b"by group" + b"".join(asked), predictions)


def _of_numbers(header: audit.AuditHeader | audit.AuditModelsRequest | groups.ByGroupHeader) -> Message:
    """Announce the predictions, if any follow, as float64, which has every type's numbers."""
    if isinstance(header, audit.AuditModelsRequest):
        return header
    announced = copy.deepcopy(header)
    announced.predictions.element_type = array_pb2.ELEMENT_TYPE_FLOAT64
    return announced


def _digest(asked: bytes, predictions: Predictions) -> bytes:
    whole = isinstance(predictions, np.ndarray)
    few = isinstance(predictions, np.ndarray) and 8 * predictions.size <= _AT_ONCE_BYTES
    digest = blake3(asked, max_threads=1 if few else blake3.AUTO)
    for block in (predictions,) if isinstance(predictions, np.ndarray) else predictions:
        flat = block.reshape(-1)
        for start in range(0, flat.size, _PIECE):
            digest.update(np.ascontiguousarray(flat[start : start + _PIECE], "<f8").data.cast("B"))
            if whole:  # a caller's own file may have changes that are in memory alone
                let_go(block)
    return digest.digest()
