"""The interface of a practice: its task, its result, and its report about private rows read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from developer.training.groups import GroupAdder, require_both
from developer.training.model import TrainingBudget, TrainingPromise, TrainingSet, TrainingStep
from developer.training.network import Network
from fairwall.arrays import Bytes, Floats
from fairwall.errors import UserError
from fairwall.learning.ensemble import Ensemble


class Decider(Protocol):
    """A model that decides."""

    def scores(self, features: Floats) -> Floats:
        """Return the probability of label 1, shape (rows,), in [0, 1]."""

    def decisions(self, features: Floats, protected: Bytes | None = None) -> Floats:
        """Return each row's probability of a positive decision, shape (rows,)."""


@dataclass(frozen=True, eq=False)
class Halved:
    """A network that decides 1 where its score is at least 1/2, whatever the group."""

    network: Ensemble

    def scores(self, features: Floats) -> Floats:
        """Return the probability of label 1."""
        return np.asarray(self.network.scores(features)[0])

    def decisions(
        self,
        features: Floats,
        protected: Bytes | None = None,  # noqa: ARG002
    ) -> Floats:
        """Return decisions as probabilities 0 or 1."""
        return at_half(self.scores(features))


def at_half(scores: Floats) -> Floats:
    """Return 1 where the score is at least 1/2, else 0."""
    return (scores >= 0.5).astype(np.float64)


@dataclass(frozen=True, eq=False)
class PracticeTask:
    """The inputs of a practice.

    Attributes
    ----------
    people : the private rows, n of d features.
    budget : of all steps together that read private rows.
    settings : of the private network; its own budget is not read.
    protected : (n,), 1 for the advantaged group; None where the developer does not hold it.
    public : rows without any guarantee.
    sums : from the holder of the attribute.
    columns : d names of features, ``column=value`` for one-hot ones.
    """

    people: TrainingSet
    seed: int
    budget: TrainingBudget
    settings: Network
    protected: Bytes | None = None
    public: TrainingSet | None = None
    sums: GroupAdder | None = None
    columns: tuple[str, ...] = ()
    public_protected: Bytes | None = None

    def __post_init__(self) -> None:
        if self.protected is not None and len(self.protected) != len(self.people.labels):
            raise ValueError("every row has one group")
        if self.public_protected is not None and (
            self.public is None or len(self.public_protected) != len(self.public.labels)
        ):
            raise ValueError("every public row has one group")

    def groups(self) -> Bytes:
        """Return the protected attribute; raise `UserError` unless it is held and both groups occur."""
        if self.protected is None:
            raise UserError("this practice needs the group of every row")
        require_both(self.protected)
        return self.protected


@dataclass(frozen=True, eq=False)
class Practised:
    """A model and its guarantee.

    steps : every step that reads private rows.
    spent : everybody's guarantee, for all steps together: of two groups' guarantees the weaker one.
    by_group : the guarantees of the disadvantaged and the advantaged, where these differ.
    """

    model: Decider
    steps: tuple[TrainingStep, ...]
    spent: TrainingPromise
    by_group: tuple[TrainingPromise, TrainingPromise] | None = None


@dataclass(frozen=True)
class TrainingPractice:
    """A practice of section VII of [SD], its trade-off, and whether it needs every row's group or public rows."""

    train: Callable[[PracticeTask], Practised]
    title: str
    trades: str
    groups: bool = False
    public: bool = False
