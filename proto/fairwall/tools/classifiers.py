"""Audits of one fitted classifier: its predictions for the test set, and the size of its gap."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fairwall.client.audit_client import AuditClient
from fairwall.client.gaps import Answer
from fairwall.client.rows import labels_of
from fairwall.laws.metrics.metric import find_metric
from fairwall.tables.values import favourable

__tracebackhide__ = True
"""Hides frames from pytest, which would print arguments: rows about people."""

Response = Literal["decisions", "probabilities"]


def ask_about(
    audits: AuditClient,
    classifier: Any,
    X: Any,
    metric: str,
    epsilon: float,
    *,
    ids: Sequence[object] | None = None,
    table: Any = None,
    by: str = "",
    response: Response = "decisions",
    positive: object = None,
) -> Answer:
    """Ask about a classifier, once and for all: asking again about the same predictions costs nothing.

    Parameters
    ----------
    classifier : object
        Fitted, with ``classes_`` (two) and ``predict`` or ``predict_proba``, as scikit-learn has them.
    X : frame or array, shape (people, features)
        The rows of compliance's test set. A frame's labels are the ids, unless they are pandas' default, and agree with
        ``ids`` and ``table``.
    metric : str
        A difference, such as "sp" or "eo".
    epsilon : float
        Epsilon of new predictions; those asked about before are free.
    ids, table, by : sequence of object or None, Any, str
        The rows' identity, and the protected column, as in `AuditClient.ask`.
    response : {"decisions", "probabilities"}
        The audited predictions: decisions for the favourable class, or its probability.
    positive : object
        The favourable one of ``classes_``; not needed for 0 and 1, or false and true.

    Raises
    ------
    ValueError, AuditRefused, AuditUnavailable
        As `AuditClient.ask`; and ValueError for a classifier of other than two classes, or an unknown favourable class.
    """
    check_difference(metric)
    predictions = predictions_of(classifier, X, response, positive=positive)
    return audits.ask(predictions, metric, epsilon, ids=ids, table=table, by=by, once=True)


def predictions_of(classifier: Any, X: Any, response: Response = "decisions", *, positive: object = None) -> Any:
    """Return a classifier's predictions for rows, shape (people,), labelled as a frame's rows; else as `ask_about`.

    ValueError for a classifier that fails, is of other than two classes, or has an unknown favourable class.
    """
    predictions, labels = _predictions(classifier, X, response, positive), labels_of(X)
    return predictions if labels is None else sys.modules["pandas"].Series(predictions, labels)


def check_difference(metric: str) -> None:
    """Raise ValueError for a metric that is no difference between groups, whose best value is 0."""
    if not find_metric(metric).bounded:
        raise ValueError(
            f"metric {metric} is a ratio: its best value is not 0, which this seeks; choose a gap, such as sp"
        )


def size(answer: Answer) -> float:
    """Return the absolute value of the first model's gap, noise included."""
    return float(abs(answer.gaps[0]))


def largest(answer: Answer) -> float:
    """Return a bound on the first model's exact absolute gap, by its guaranteed interval; NaN without one."""
    return float(max(abs(answer.low[0]), abs(answer.high[0])))


def _predictions(classifier: Any, X: Any, response: Response, positive: object) -> Any:
    classes = list(getattr(classifier, "classes_", ()))
    place = favourable(classes, positive)
    try:
        if response == "probabilities":
            return np.asarray(classifier.predict_proba(X))[:, place]
        return (np.asarray(classifier.predict(X)) == classes[place]).astype(np.float64)
    except Exception as error:  # its text may quote a row
        raise ValueError(
            f"the classifier does not predict for these rows ({type(error).__name__}): call it yourself to see why"
        ) from None
