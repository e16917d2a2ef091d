"""A question about one fitted classifier: what it predicts of the test set, and how large its gap may be."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from fairwall.client.audit_client import AuditClient
from fairwall.client.gaps import Answer
from fairwall.client.rows import labels_of
from fairwall.laws.metric import find_metric
from fairwall.tables.values import favourable

__tracebackhide__ = True
"""pytest shows the arguments of what failed, and these are rows about people."""

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
    """Ask about a classifier, once and for all: asked about the same predictions again, it costs nothing.

    Parameters
    ----------
    classifier : object
        Fitted, with ``classes_`` (two) and ``predict`` or ``predict_proba``, as scikit-learn has them.
    X : frame or array, shape (people, features)
        The rows of compliance's test set. A frame's labels are the ids, unless pandas made them to count the rows, and
        agree with ``ids`` and ``table``.
    metric : str
        A difference, such as "sp" or "eo".
    epsilon : float
        What predictions cost that were not asked about before.
    ids, table, by : sequence of object or None, Any, str
        Whose the rows are, and which column gaps are by, as in `AuditClient.ask`.
    response : {"decisions", "probabilities"}
        What is audited: whether it decides for the favourable class, or the probability of that.
    positive : object
        The favourable one of ``classes_``; 1 of 0 and 1, and true of false and true, need no word.

    Raises
    ------
    ValueError, AuditRefused, AuditUnavailable
        As `AuditClient.ask`; and ValueError for a classifier of other than two classes, or if nobody says which of them
        is the favourable one.
    """
    check_difference(metric)
    predictions = predictions_of(classifier, X, response, positive=positive)
    return audits.ask(predictions, metric, epsilon, ids=ids, table=table, by=by, once=True)


def predictions_of(classifier: Any, X: Any, response: Response = "decisions", *, positive: object = None) -> Any:
    """Return what a classifier predicts for rows, shape (people,), labelled as a frame's rows are; else as `ask_about`.

    Raises ValueError for a classifier of other than two classes, or of which nobody says what is favourable, and for
    one that fails.
    """
    predictions, labels = _predictions(classifier, X, response, positive), labels_of(X)
    return predictions if labels is None else sys.modules["pandas"].Series(predictions, labels)


def check_difference(metric: str) -> None:
    """Refuse a metric that is no difference between groups, whose best value is 0; ValueError."""
    if not find_metric(metric).bounded:
        raise ValueError(
            f"metric {metric} is a ratio: its best value is not 0, which this seeks; choose a gap, such as sp"
        )


def size(answer: Answer) -> float:
    """Return how large the first model's gap is, whoever is ahead, noise included."""
    return float(abs(answer.gaps[0]))


def largest(answer: Answer) -> float:
    """Return how large the first model's exact gap may be, by its interval that is guaranteed; NaN where none is."""
    return float(max(abs(answer.low[0]), abs(answer.high[0])))


def _predictions(classifier: Any, X: Any, response: Response, positive: object) -> Any:
    classes = list(getattr(classifier, "classes_", ()))
    place = favourable(classes, positive)
    try:
        if response == "probabilities":
            return np.asarray(classifier.predict_proba(X))[:, place]
        return (np.asarray(classifier.predict(X)) == classes[place]).astype(np.float64)
    except Exception as error:  # whose text may quote a row
        raise ValueError(
            f"the classifier does not predict for these rows ({type(error).__name__}): call it yourself to see why"
        ) from None
