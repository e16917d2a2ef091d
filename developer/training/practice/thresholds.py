"""Thresholds for each group, set after training for equal rates of positive decisions.

[SD], VII-C; Hardt, Price and Srebro (NeurIPS 2016), by Fairlearn's `ThresholdOptimizer`: of all pairs of rules with
equal rates in both groups, each a threshold or a lottery between two, the most accurate pair. The paper calls it free,
as post-processing is. A fit on private rows is not free: here it uses a noisy histogram of them, which is paid for, or
public rows where their groups are known. Decisions need each row's group.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from developer.training.practice.histogram import MIDDLES, train_and_count
from developer.training.practice.practice import PracticeTask, Practised
from fairwall.arrays import Bytes, Floats
from fairwall.errors import UserError
from fairwall.learning.ensemble import Ensemble

Rule = tuple[tuple[float, float], ...]
"""Pairs of a probability and a threshold; a score above the threshold is decided 1."""


@dataclass(frozen=True, eq=False)
class ByThreshold:
    """A network that decides by a rule for each group, the disadvantaged one's first."""

    network: Ensemble
    rules: tuple[Rule, Rule]

    def scores(self, features: Floats) -> Floats:
        """Return the probability of label 1."""
        return np.asarray(self.network.scores(features)[0])

    def decisions(self, features: Floats, protected: Bytes | None = None) -> Floats:
        """Return each row's probability of a positive decision."""
        if protected is None:
            raise UserError("thresholds for each group need the group of every row that is decided")
        scores = self.scores(features)
        first, second = (sum(part * (scores > threshold) for part, threshold in rule) for rule in self.rules)
        return np.asarray(np.where(protected == 1, second, first), dtype=np.float64)


def train(task: PracticeTask) -> Practised:
    """Train by DP-SGD, then set thresholds."""
    groups = task.groups()
    if find_spec("fairlearn") is None:
        raise UserError("thresholds by group need Fairlearn: pip install 'fairwall[training]'")
    done = train_and_count(task, groups)
    return Practised(ByThreshold(done.network, rules(done.counts)), done.steps, done.spent)


def rules(counts: Floats) -> tuple[Rule, Rule]:
    """Return the groups' rules for demographic parity, fitted to counts, (2, 2, bins), rounded to whole rows."""
    from fairlearn.postprocessing import ThresholdOptimizer
    from sklearn.base import BaseEstimator

    class Score(BaseEstimator):  # type: ignore[misc]
        """A model whose one feature is the score."""

        def fit(self, *_: Any) -> Score:
            return self

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def predict(self, X: Floats) -> Floats:
            return np.asarray(X, np.float64)[:, 0]

    whole = np.rint(counts).astype(np.intp)
    # Fairlearn needs rows of both labels in each group; one row is negligible beside the noise.
    whole[:, 0, 0], whole[:, 1, -1] = np.maximum(whole[:, 0, 0], 1), np.maximum(whole[:, 1, -1], 1)
    group, label, bin_ = (np.repeat(index.ravel(), whole.ravel()) for index in np.indices(whole.shape))
    optimizer = ThresholdOptimizer(
        estimator=Score(), constraints="demographic_parity", prefit=True, predict_method="predict"
    )
    optimizer.fit(MIDDLES[bin_][:, None], label, sensitive_features=group)
    fitted = optimizer.interpolated_thresholder_.interpolation_dict
    first, second = (
        tuple((float(part), float(operation.threshold)) for part, operation in parts)
        for parts in (((of.p0, of.operation0), (of.p1, of.operation1)) for of in (fitted[0], fitted[1]))
    )
    return first, second
