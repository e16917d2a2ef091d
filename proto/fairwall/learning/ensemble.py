"""Many multilayer perceptrons of one shape, as numbers: training's result, and a black box's model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from fairwall.arrays import Floats

_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Ensemble:
    """Multilayer perceptrons: rectified hidden layers and one logit.

    Per layer, weights are (models, in, out) and biases (models, out); the last layer's out is 1. With ``unit_rows``
    every row but zeros is scaled to norm 1 before the first layer.
    """

    weights: tuple[NDArray[np.float32], ...]
    biases: tuple[NDArray[np.float32], ...]
    unit_rows: bool = False

    @property
    def models(self) -> int:
        """Number of models."""
        return len(self.biases[0])

    @property
    def features(self) -> int:
        """Number of features."""
        return int(self.weights[0].shape[1])

    @property
    def layers(self) -> tuple[int, ...]:
        """The sizes of the hidden layers."""
        return tuple(bias.shape[1] for bias in self.biases[:-1])

    def logits(self, features: Floats) -> Floats:
        """Return every model's logit of every row, shape (models, rows), from features, shape (rows, d)."""
        if self.unit_rows:
            features = unit(features)
        single = features.astype(np.float32)
        answers = np.empty((self.models, len(features)))
        last = len(self.weights) - 1
        # One model at a time, and a block of rows, stay in the cache; and one model's answers are the same bits,
        # whatever other models stand beside it.
        for model in range(self.models):
            for start in range(0, len(features), _ROWS):
                hidden = single[start : start + _ROWS]
                for layer, (weights, biases) in enumerate(zip(self.weights, self.biases, strict=True)):
                    hidden = hidden @ weights[model] + biases[model]
                    if layer < last:
                        np.maximum(hidden, 0, out=hidden)
                answers[model, start : start + _ROWS] = hidden[:, 0]
        return answers

    def scores(self, features: Floats) -> Floats:
        """Return every model's score of every row, in [0, 1], in the shapes of `logits`."""
        # The tanh form of the logistic function avoids overflow.
        return np.asarray(0.5 + 0.5 * np.tanh(0.5 * self.logits(features)))

    def take(self, models: Sequence[int] | NDArray[np.intp]) -> Ensemble:
        """Return some of the models, in the requested order."""
        chosen = np.asarray(models, dtype=np.intp)
        return Ensemble(tuple(w[chosen] for w in self.weights), tuple(b[chosen] for b in self.biases), self.unit_rows)


def unit(features: Floats) -> Floats:
    """Return rows scaled to norm 1; a row of zeros stays zero."""
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    return np.asarray(features / np.where(norms > 0, norms, 1))


def together(ensembles: Sequence[Ensemble]) -> Ensemble:
    """Return ensembles of one shape as one, in order; ValueError if some scale rows and some do not."""
    (unit_rows,) = {ensemble.unit_rows for ensemble in ensembles}
    return Ensemble(
        tuple(np.concatenate(layer) for layer in zip(*(e.weights for e in ensembles), strict=True)),
        tuple(np.concatenate(layer) for layer in zip(*(e.biases for e in ensembles), strict=True)),
        unit_rows,
    )


def fresh(features: int, layers: Sequence[int], rngs: Sequence[np.random.Generator]) -> Ensemble:
    """Return initial weights, uniform with the variance of Glorot and Bengio (AISTATS 2010), and biases of 0."""
    sizes = (features, *layers, 1)
    weights = []
    for before, after in pairwise(sizes):
        limit = np.sqrt(6 / (before + after))
        weights.append(np.stack([rng.uniform(-limit, limit, (before, after)).astype(np.float32) for rng in rngs]))
    biases = tuple(np.zeros((len(rngs), after), np.float32) for after in sizes[1:])
    return Ensemble(tuple(weights), biases)


def constant(features: int, labels: Sequence[int]) -> Ensemble:
    """Return models without hidden layers that give every row the score 0 or 1, whatever its features."""
    # tanh(20) is 1 in float64: the scores are exactly 0 and 1.
    biases = np.where(np.asarray(labels) == 1, 40, -40).astype(np.float32)[:, None]
    return Ensemble((np.zeros((len(biases), features, 1), np.float32),), (biases,))
