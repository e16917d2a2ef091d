"""Measures of a model's utility, without regard to groups.

Utility has no sensitivity: these are no rows of `fairwall.laws.metrics.metric`.

| key          | definition                                                 | scikit-learn                         |
|--------------|------------------------------------------------------------|--------------------------------------|
| ``acc``      | share of decisions that are the label                      | ``accuracy_score``                   |
| ``f1``       | 2 TP / (2 TP + FP + FN)                                    | ``f1_score``                         |
| ``recall``   | TP / (TP + FN)                                             | ``recall_score``                     |
| ``auc``      | share of (1, 0) pairs whose scores are in order, ties half | ``roc_auc_score(labels, scores)``    |
| ``auc_hard`` | the same of decisions: (recall + TNR) / 2                  | ``roc_auc_score(labels, decisions)`` |

``auc_hard`` is what Arcolezi, Makhlouf and Palamidessi (DBSec 2023) call AUC: their code gives it the decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Bytes, Floats

Labels = Bytes
Scores = Floats


@dataclass(frozen=True)
class Utility:
    """A measure in [0, 1] that is better the larger it is.

    Attributes
    ----------
    key : its name in `UTILITIES` and in results.
    title : its name in reports.
    measure : from labels, decisions and scores, each of shape (n,): the labels and decisions 0 or 1, the scores finite
        and larger for label 1. NaN where it divides by 0, as recall does without a person of label 1.
    """

    key: str
    title: str
    measure: Callable[[Labels, Labels, Scores], float]


def _accuracy(labels: Labels, decisions: Labels, _: Scores) -> float:
    return _ratio(_count(labels == decisions), len(labels))


def _f1(labels: Labels, decisions: Labels, _: Scores) -> float:
    hits = _count(labels & decisions)
    return _ratio(2 * hits, _count(labels) + _count(decisions))


def _recall(labels: Labels, decisions: Labels, _: Scores) -> float:
    return _ratio(_count(labels & decisions), _count(labels))


def _auc(labels: Labels, _: Labels, scores: Scores) -> float:
    """Return the AUC by the ranks of the scores (Mann-Whitney); all numbers are whole or halves, so no bit is lost."""
    # return_index makes the sort stable, and the same on all processors.
    place, many = np.unique(scores, return_index=True, return_inverse=True, return_counts=True)[2:]
    below = np.cumsum(many) - many
    rank = below + (many + 1) / 2
    ones = _count(labels)
    zeros = len(labels) - ones
    pairs = float(rank[place][labels == 1].sum()) - ones * (ones + 1) / 2
    return _ratio(pairs, ones * zeros)


def _auc_hard(labels: Labels, decisions: Labels, _: Scores) -> float:
    return _auc(labels, decisions, decisions.astype(np.float64))


def _count(chosen: NDArray[np.generic]) -> int:
    return int(np.count_nonzero(chosen))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


UTILITIES: dict[str, Utility] = {
    utility.key: utility
    for utility in (
        Utility("acc", "accuracy", _accuracy),
        Utility("f1", "F1", _f1),
        Utility("recall", "recall", _recall),
        Utility("auc", "AUC", _auc),
        Utility("auc_hard", "AUC on decisions", _auc_hard),
    )
}

RATED = ("sp", "eo", "oad")
"""Metrics whose groups' rates are reported of a model, in this order, the advantaged before the disadvantaged.

The paper's result files call them SP_a_1, SP_a_0, EO_a_1, EO_a_0, OA_a_1 and OA_a_0.
"""
