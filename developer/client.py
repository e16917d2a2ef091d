"""The developer's client of AuditService."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.compliance.v1 import audit_service_pb2 as audit
from fairwall.compliance.v1.audit_service_pb2_grpc import AuditServiceStub
from fairwall.rpc import arrays
from fairwall.wire.metrics import number_of

AUDIT_SECONDS = 600.0


@dataclass(frozen=True)
class Answer:
    """What compliance answered to one batch.

    Parameters
    ----------
    gaps : ndarray, shape (models,)
    epsilon_charged, epsilon_remaining : float
    """

    gaps: NDArray[np.float64]
    epsilon_charged: float
    epsilon_remaining: float


def ask(
    service: AuditServiceStub,
    deal_id: str,
    request_id: str,
    metric: str,
    predictions: NDArray[np.floating],
    epsilon: float,
) -> Answer:
    """Ask for one metric of a batch of models.

    Parameters
    ----------
    service : AuditServiceStub
    deal_id : str
    request_id : str
        Names this request: the same one again gets the stored answer and costs nothing.
    metric : str
        "sp", "abs_sp", "eo" or "abs_eo".
    predictions : ndarray of float64, float32 or uint8, shape (models, people)
        In [0, 1].
    epsilon : float
        What to spend on the whole batch.

    Raises
    ------
    grpc.RpcError
        If compliance refuses; :func:`fairwall.rpc.errors.reason_of` tells why.
    """
    header = audit.AuditHeader(
        request_id=request_id,
        deal_id=deal_id,
        metric=number_of(metric),
        epsilon=epsilon,
        predictions=arrays.header_of(predictions),
    )

    def parts() -> Iterator[audit.AuditRequest]:
        yield audit.AuditRequest(header=header)
        for chunk in arrays.chunks_of(predictions):
            yield audit.AuditRequest(predictions_chunk=chunk)

    response: audit.AuditResponse = service.Audit(parts(), timeout=AUDIT_SECONDS)
    gaps = arrays.from_message(response.gaps).astype(np.float64, copy=False)
    return Answer(gaps, response.epsilon_charged, response.epsilon_remaining)
