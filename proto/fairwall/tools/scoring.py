"""A scorer for scikit-learn: minus a classifier's gap on compliance's test set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairwall.client.audit_client import AuditClient
from fairwall.client.predictions import in_order
from fairwall.tools.classifiers import Response, ask_about, check_difference, size

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""


@dataclass(frozen=True)
class GapScorer:
    """A scorer of fitted classifiers: minus the absolute value of the gap in compliance's answer, noise included.

    It may stand where scikit-learn takes a callable for ``scoring``, whose rows are ignored: every score is about
    compliance's one test set, and costs epsilon, or nothing if an earlier classifier predicted the same. The scorer
    keeps no connection, so that it can be sent to other processes.

    Parameters
    ----------
    address, credentials, data : str, str or Path, str or None
        As `AuditClient`'s.
    metric, epsilon, ids, table, by, response, positive : str, float, sequence or None, Any, str, Response, object
        As `fairwall.tools.classifiers.ask_about`'s.
    X : frame or array, shape (people, features)
        The rows of compliance's test set.

    Raises
    ------
    ValueError
        For a metric whose best value is not 0.
    """

    address: str
    credentials: str | Path
    metric: str
    epsilon: float
    X: Any = field(repr=False)
    ids: Sequence[object] | None = field(default=None, repr=False)
    table: Any = field(default=None, repr=False)
    by: str = ""
    response: Response = "decisions"
    data: str | None = None
    positive: object = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_difference(self.metric)
        object.__setattr__(self, "ids", in_order(self.ids, "ids"))  # read again at each call

    def __call__(self, estimator: Any, X: object = None, y: object = None) -> float:  # noqa: ARG002 - scikit-learn's
        """Return the score, at most 0; raises as `AuditClient.ask`."""
        with AuditClient(self.address, self.credentials, data=self.data) as audits:
            answer = ask_about(
                audits,
                estimator,
                self.X,
                self.metric,
                self.epsilon,
                ids=self.ids,
                table=self.table,
                by=self.by,
                response=self.response,
                positive=self.positive,
            )
        return -size(answer)
