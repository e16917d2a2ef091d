"""Calibration of scores after training: of the rows with score s, a part s has label 1.

[SD], VII-C; isotonic regression (Zadrozny and Elkan, KDD 2002) of the label on the score, by scikit-learn. It is fitted
on a noisy histogram of private rows, which is paid for; on public rows it is free. Where the groups are held, each has
its own calibration, and decisions need each row's group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from developer.training.practice.histogram import MIDDLES, train_and_count
from developer.training.practice.practice import PracticeTask, Practised, at_half
from fairwall.arrays import Bytes, Floats
from fairwall.errors import UserError
from fairwall.learning.ensemble import Ensemble

Curve = tuple[Floats, Floats]
"""Scores, rising, and their calibrated values; straight lines in between."""


@dataclass(frozen=True, eq=False)
class Calibrated:
    """A network with scores calibrated by everybody's curve, and decisions at 1/2.

    Where there are curves ``of_group``, the disadvantaged one's and the advantaged one's, they make the decisions.
    """

    network: Ensemble
    overall: Curve
    of_group: tuple[Curve, Curve] | None

    def scores(self, features: Floats) -> Floats:
        """Return the probability of label 1, calibrated over everybody."""
        return np.asarray(np.interp(self.network.scores(features)[0], *self.overall))

    def decisions(self, features: Floats, protected: Bytes | None = None) -> Floats:
        """Return decisions as probabilities 0 or 1."""
        if self.of_group is None:
            return at_half(self.scores(features))
        if protected is None:
            raise UserError("a calibration for each group needs the group of every row that is decided")
        scores = self.network.scores(features)[0]
        first, second = (np.interp(scores, *curve) for curve in self.of_group)
        return at_half(np.where(protected == 1, second, first))


def train(task: PracticeTask) -> Practised:
    """Train by DP-SGD, then calibrate: by group where groups are held."""
    groups = None if task.protected is None else task.groups()
    done = train_and_count(task, groups)
    of_group = None if groups is None else (curve(done.counts[0]), curve(done.counts[1]))
    return Practised(Calibrated(done.network, curve(done.counts.sum(0)), of_group), done.steps, done.spent)


def curve(counts: Floats) -> Curve:
    """Return a rising curve of the share of label 1, fitted to counts by label and bin, (2, bins) and at least 0."""
    from sklearn.isotonic import IsotonicRegression

    sizes = counts.sum(0)
    there = sizes > 0
    if not there.any():
        return np.array([0.0, 1.0]), np.array([0.0, 1.0])
    fitted = IsotonicRegression(y_min=0, y_max=1).fit(MIDDLES[there], counts[1, there] / sizes[there], sizes[there])
    return np.asarray(fitted.X_thresholds_, np.float64), np.asarray(fitted.y_thresholds_, np.float64)
