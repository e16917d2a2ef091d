"""A request's content as one digest, which compliance keeps, and the sender can compute."""

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
"""Digits of a digest in a request id: 128 bits, so that no two questions share an id by chance."""

Predictions = NDArray[np.generic] | Iterable[NDArray[np.generic]]
"""Predictions of shape (models, people), whole or some models at a time."""

_AT_ONCE_BYTES = 1 << 20
"""Largest batch, in bytes, that one thread digests sooner than several would have begun."""

_PIECE = 1 << 21
"""Number of predictions that are converted to float64 at a time, and digested by several threads."""


def audit_digest(
    header: audit.AuditHeader | audit.AuditModelsRequest,
    predictions: Predictions,
) -> bytes:
    """Return the digest of a request: an id may be used again only for the same one.

    The two kinds of request never serialise alike: field 5 is a message in one and a number above 0 in the other. The
    digest depends on the predictions' numbers, not on their type on the wire.
    """
    return _digest(_of_numbers(header).SerializeToString(deterministic=True), predictions)


def table_digest(request: Message, content: bytes) -> bytes:
    """Return the digest of a request about a table, given a digest of the table's current rows."""
    return blake3(b"table" + content + request.SerializeToString(deterministic=True)).digest()


def sealed_digest(header: audit.AuditSealedHeader, models: Iterable[bytes]) -> bytes:
    """Return the digest of a request about sealed models: it covers the files, whatever their scores."""
    content = b"".join(blake3(model).digest() for model in models)
    return blake3(b"sealed" + content + header.SerializeToString(deterministic=True)).digest()


def by_group_digest(
    header: groups.ByGroupHeader,
    terms: groups.GetGroupTermsResponse,
    predictions: Predictions,
) -> bytes:
    """Return the digest of a request for counts by group; it covers the attributes' values, but no remaining budget."""
    policy = groups.GetGroupTermsResponse()
    policy.CopyFrom(terms)
    for name in ("epsilon", "epsilon_remaining"):
        policy.ClearField(name)
    asked = (message.SerializeToString(deterministic=True) for message in (_of_numbers(header), policy))
    return _digest(b"by group" + b"".join(asked), predictions)


def _of_numbers(header: audit.AuditHeader | audit.AuditModelsRequest | groups.ByGroupHeader) -> Message:
    """Return a header that announces predictions, if any follow, as float64, which has every type's numbers."""
    if isinstance(header, audit.AuditModelsRequest):
        return header
    announced = copy.deepcopy(header)
    announced.predictions.element_type = array_pb2.ELEMENT_TYPE_FLOAT64
    return announced


def _digest(content: bytes, predictions: Predictions) -> bytes:
    whole = isinstance(predictions, np.ndarray)
    few = isinstance(predictions, np.ndarray) and 8 * predictions.size <= _AT_ONCE_BYTES
    digest = blake3(content, max_threads=1 if few else blake3.AUTO)
    for block in (predictions,) if isinstance(predictions, np.ndarray) else predictions:
        flat = block.reshape(-1)
        for start in range(0, flat.size, _PIECE):
            digest.update(np.ascontiguousarray(flat[start : start + _PIECE], "<f8").data.cast("B"))
            if whole:  # a caller's own file may have changes in memory alone
                let_go(block)
    return digest.digest()
