"""Logistic regressions of the developer: the base model h0, and a predictor of people's groups from features alone.

They are fitted by Newton's method, in numpy alone: importing scikit-learn takes longer than a small game. The loss is
that of scikit-learn's ``LogisticRegression()``: with log-odds ``z = x w + b`` the sum of ``ln(1 + e^z) - y z`` over all
rows, plus ``|w|^2 / 2``. The intercept b is free. Where both labels occur the loss is strictly convex and has one
minimum, even for collinear, constant or separating features.

The base model is the model to be released, from which the queried models are derived. It is trained on rows outside the
test set and never on a protected attribute, which the developer does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from fairwall.arrays import Bytes, Floats

Model = Callable[[Floats], Floats]
"""Features, shape (rows, d), to scores in [0, 1], shape (rows,)."""

_FOLDS = 5

_STEPS_MAX = 200
"""Most Newton steps; a table of people takes about eight."""

_CLOSE = 1e-6
"""Largest change of a row's log-odds in the last step; the remaining error is about its square."""

_NEAR = 1e-3
"""Largest change of a row's log-odds at which a step is taken even if rounding hides the fall of the loss."""

_HALVINGS_MAX = 60

_LEAST_CURVATURE = 1e-12
"""Smallest curvature: rows predicted with certainty give the intercept none, and the equations must stay solvable."""


@dataclass(frozen=True, eq=False)
class Logistic:
    """A fitted logistic regression; weights: (d,)."""

    weights: Floats
    intercept: float

    def log_odds(self, features: Floats) -> Floats:
        """Return ln(P(1) / P(0)), shape (rows,), for features of shape (rows, d)."""
        odds: Floats = features @ self.weights + self.intercept
        return odds

    def scores(self, features: Floats) -> Floats:
        """Return P(1), shape (rows,), in [0, 1], for features of shape (rows, d)."""
        return _probability(self.log_odds(features))


def fit(features: Floats, labels: Bytes | Floats) -> Logistic:
    """Fit labels, (rows,), 0 or 1 or the probability of 1, to features, (rows, d), finite."""
    rows, columns = features.shape
    ones = float(labels.sum())
    if not 0 < ones < rows:
        raise ValueError("a logistic regression needs rows of both labels")
    design = np.column_stack([features, np.ones(rows)])
    penalised = np.append(np.ones(columns), 0.0)
    point = np.append(np.zeros(columns), np.log(ones / (rows - ones)))
    log_odds = design @ point
    for _ in range(_STEPS_MAX):
        share = _probability(log_odds)
        scaled = design * np.sqrt(np.maximum(share * (1 - share), _LEAST_CURVATURE))[:, None]
        hessian = scaled.T @ scaled
        hessian[np.diag_indices_from(hessian)] += penalised
        step = np.linalg.solve(hessian, (share - labels) @ design + penalised * point)
        moved = design @ step
        if np.abs(moved).max() <= _CLOSE:
            point = point - step
            break
        size = _halved(log_odds, moved, point, step, penalised, labels)
        if size == 0:
            # Rounding hides the fall of the loss. Near the minimum Newton's step is still right.
            if np.abs(moved).max() > _NEAR:
                break
            size = 1.0
        point, log_odds = point - size * step, log_odds - size * moved
    return Logistic(point[:-1], float(point[-1]))


def _halved(
    log_odds: Floats, moved: Floats, point: Floats, step: Floats, penalised: Floats, labels: Bytes | Floats
) -> float:
    """Return the part of a step that lowers the loss: 1, or a power of 1/2; 0 where rounding prevents any."""

    def loss(size: float) -> float:
        odds, weights = log_odds - size * moved, point - size * step
        fits = np.logaddexp(0, odds) - labels * odds
        return float(fits.sum() + 0.5 * (penalised * weights**2).sum())

    now = loss(0.0)
    return next((size for size in 0.5 ** np.arange(_HALVINGS_MAX) if loss(size) < now), 0.0)


def _probability(log_odds: Floats) -> Floats:
    probability: Floats = np.exp(-np.logaddexp(0, -log_odds))
    return probability


def identity(features: Floats) -> Floats:
    """Return the single feature, clipped to [0, 1]: the base model of synthetic data."""
    return np.clip(features[:, 0], 0.0, 1.0)


def logistic(features: Floats, labels: Bytes) -> Model:
    """Train a logistic regression on features (rows, d) and labels (rows,); a constant where all labels are equal."""
    if labels.min() == labels.max():
        constant = float(labels[0])
        return lambda rows: np.full(len(rows), constant)
    return fit(features, labels).scores


def cross_fitted(features: Floats, labels: Bytes) -> Floats:
    """Return each row's score, (rows,) in [0, 1], by a logistic regression that was trained on the other folds."""
    scores = np.empty(len(labels))
    folds = min(_FOLDS, len(labels))
    for fold in range(folds):
        held_out = np.arange(len(labels)) % folds == fold
        scores[held_out] = logistic(features[~held_out], labels[~held_out])(features[held_out])
    return scores


def accuracy(scores: Floats, labels: Bytes) -> Floats:
    """Return the accuracy at the threshold 1/2: (...), for scores (..., rows) and labels (rows,)."""
    right: Floats = np.mean((scores >= 0.5) == (labels == 1), axis=-1)
    return right


def log_likelihood_ratio(sample: Floats, disadvantaged_rows: int, people: Floats) -> Floats:
    """Return each person's log-likelihood ratio, (n,), of being disadvantaged to being advantaged, by features.

    A logistic regression of the group on the features gives posterior log-odds, from which the sample's own log-odds
    are subtracted (0 where it holds half of each group). The result is ``log p(x | a=0) / p(x | a=1)``, which holds for
    any share of the groups. The sample, (rows, d), holds both groups, and begins with the `disadvantaged_rows`.

    What a developer can infer from the predictor and an audit's answers together is the open question of Hamman, Chen
    and Dutta's conclusion (FAccT 2023).
    """
    groups = (np.arange(len(sample)) < disadvantaged_rows).astype(np.uint8)
    prior = np.log(disadvantaged_rows / (len(sample) - disadvantaged_rows))
    ratio: Floats = fit(sample, groups).log_odds(people) - prior
    return ratio
