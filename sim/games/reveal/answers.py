"""Which of compliance's answers are about the metric, and which told the groups' sizes: the requests' ids say."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from fairwall.wire.queries import size_queries
from sim.games.submissions import AuditRecord, AuditReport
from sim.games.table import TrialFailed


def metric_answers(audits: Iterable[AuditRecord]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Give the exact and the released answers to metric queries, without those to size queries, in their order."""
    exact, released = [np.empty(0)], [np.empty(0)]
    for audit in audits:
        sizes = size_queries(audit.request_id, len(audit.exact))
        exact.append(audit.exact[sizes:])
        released.append(audit.released[sizes:])
    return np.concatenate(exact), np.concatenate(released)


def check_size_queries(asked: int, report: AuditReport) -> None:
    """Compare how many size queries the developer says that it asked with what the answered requests' ids say."""
    try:
        answered = sum(size_queries(audit.request_id, len(audit.exact)) for audit in report.audits)
    except ValueError as error:
        raise TrialFailed(f"developer must name what it asks for: {error}") from None
    if asked != answered:
        raise TrialFailed(f"developer says that it asked {asked} size queries, by the requests' ids it was {answered}")
