"""Separation of compliance's answers to metric queries from those to size queries, by the ids of the requests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fairwall.wire.queries import size_queries
from sim.games.submissions import AuditRecord, AuditReport
from sim.games.table import TrialFailed


def metric_answers(audits: Iterable[AuditRecord]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the exact and the released answers to metric queries, in their order, without those to size queries."""
    exact, released = [np.empty(0)], [np.empty(0)]
    for audit in audits:
        sizes = size_queries(audit.request_id, len(audit.exact))
        exact.append(audit.exact[sizes:])
        released.append(audit.released[sizes:])
    return np.concatenate(exact), np.concatenate(released)


def check_size_queries(queries: int, report: AuditReport) -> None:
    """Raise TrialFailed if the developer's number of size queries differs from that of the answered requests' ids."""
    try:
        answered = sum(size_queries(audit.request_id, len(audit.exact)) for audit in report.audits)
    except ValueError as error:
        raise TrialFailed(f"developer must name what it asks for: {error}") from None
    if queries != answered:
        raise TrialFailed(
            f"developer says that it asked {queries} size queries, by the requests' ids it was {answered}"
        )
