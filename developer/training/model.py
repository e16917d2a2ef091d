"""What a model is trained on, what it may spend, and what comes out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.errors import UserError
from fairwall.learning.ensemble import Ensemble


@dataclass(frozen=True, eq=False)
class People:
    """The rows to train on.

    Attributes
    ----------
    features : (n, d), finite.
    labels : (n,), 0 or 1; both occur.
    """

    features: NDArray[np.float64]
    labels: NDArray[np.uint8]

    def __post_init__(self) -> None:
        if len(self.features) != len(self.labels):
            raise ValueError("features and labels have one entry per row")
        if len(self.labels) == 0 or self.labels.min() == self.labels.max():
            raise UserError("the target is the same for all rows: there is nothing to train")


@dataclass(frozen=True)
class Budget:
    """What a private model may spend, everything that reads private rows included.

    Neighbours are two tables of as many records, of which one record adds nothing in one of them, its group included:
    how many records there are is public, and rates of sampling and weights are computed from it.

    Attributes
    ----------
    epsilon : above 0.
    delta : in (0, 1); 0 for pure epsilon, which only a regression can promise.
    statistics : in (0, 1), the share of epsilon that a fair model's group statistics may take; unused by others.
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
class Spent:
    """What a model promises: (epsilon, delta)-privacy of each record, for what was really done."""

    epsilon: float
    delta: float


@dataclass(frozen=True)
class Step:
    """One step that read private rows: what it did, what it cost by itself, and ``of`` whom the records were."""

    what: str
    epsilon: float
    delta: float
    of: str = "everybody"


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, what it promises, None for nothing, and the steps that read private rows for that."""

    network: Ensemble
    spent: Spent | None
    steps: tuple[Step, ...] = ()

    def scores(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Compute the probability of label 1, shape (rows,), in [0, 1], for features of shape (rows, d)."""
        return np.asarray(self.network.scores(features)[0])
