"""The inputs of training (rows and budget) and its result: a model, its privacy guarantee, and the private steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fairwall.arrays import Bytes, Floats
from fairwall.errors import UserError
from fairwall.learning.ensemble import Ensemble


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """The rows to train on: features, (n, d), finite, and labels, (n,), 0 or 1, of which both occur."""

    features: Floats
    labels: Bytes

    def __post_init__(self) -> None:
        if len(self.features) != len(self.labels):
            raise ValueError("features and labels have one entry per row")
        if len(self.labels) == 0 or self.labels.min() == self.labels.max():
            raise UserError("the target is the same for all rows: there is nothing to train")


@dataclass(frozen=True)
class TrainingBudget:
    """The privacy budget of a model, for every step that reads private rows.

    Neighbours are two tables of the same number of records, of which one record contributes nothing in one of them, not
    even its group: the number of records is public, and sampling rates and weights are computed from it.

    epsilon : above 0.
    delta : in [0, 1); 0 for pure epsilon, which only a regression can promise.
    statistics : in (0, 1), the share of epsilon for a fair model's group statistics; unused by others.
    """

    epsilon: float = 0.1
    delta: float = 1e-5
    statistics: float = 0.5

    def __post_init__(self) -> None:
        if not self.epsilon > 0:
            raise UserError(f"epsilon = {self.epsilon:,g}: a private model needs an epsilon above 0")
        if not 0 <= self.delta < 1:
            raise UserError(f"delta = {self.delta:g}: delta lies in [0, 1)")
        if not 0 < self.statistics < 1:
            raise UserError(f"statistics = {self.statistics:g}: the share of epsilon for statistics lies in (0, 1)")


@dataclass(frozen=True)
class TrainingPromise:
    """A model's guarantee: (epsilon, delta)-privacy of each record, accounted for what was really done."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class TrainingStep:
    """A step that read private rows: description, cost by itself, and the owners of the rows (``of``)."""

    what: str
    epsilon: float
    delta: float
    of: str = "everybody"


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, its guarantee (None for none), and the steps that read private rows."""

    network: Ensemble
    spent: TrainingPromise | None
    steps: tuple[TrainingStep, ...] = ()

    def scores(self, features: Floats) -> Floats:
        """Return the probability of label 1, shape (rows,), in [0, 1], for features of shape (rows, d)."""
        return np.asarray(self.network.scores(features)[0])
