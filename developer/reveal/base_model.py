"""The base model h0: the model to be released, from which the queried models are derived.

It is trained on rows outside the test set and never on a protected attribute, which the developer does not have.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from developer.reveal.logistic import fit

Model = Callable[[NDArray[np.float64]], NDArray[np.float64]]
"""Features, shape (rows, d), to scores in [0, 1], shape (rows,)."""

_FOLDS = 5


def identity(features: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the single feature, clipped to [0, 1]: the base model of synthetic data."""
    return np.clip(features[:, 0], 0.0, 1.0)


def logistic(features: NDArray[np.float64], labels: NDArray[np.uint8]) -> Model:
    """Train a logistic regression on features (rows, d) and labels (rows,); a constant where all labels are equal."""
    if labels.min() == labels.max():
        constant = float(labels[0])
        return lambda rows: np.full(len(rows), constant)
    return fit(features, labels).scores


def cross_fitted(features: NDArray[np.float64], labels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return each row's score, (rows,) in [0, 1], by a logistic regression that was trained on the other folds."""
    scores = np.empty(len(labels))
    folds = min(_FOLDS, len(labels))
    for fold in range(folds):
        held_out = np.arange(len(labels)) % folds == fold
        scores[held_out] = logistic(features[~held_out], labels[~held_out])(features[held_out])
    return scores


def accuracy(scores: NDArray[np.float64], labels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return the accuracy at the threshold 1/2: (...), for scores (..., rows) and labels (rows,)."""
    right: NDArray[np.float64] = np.mean((scores >= 0.5) == (labels == 1), axis=-1)
    return right
