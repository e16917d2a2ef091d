"""Remove from every row the direction in which the groups' means differ, then train on the result ([SD], VII-D).

Zemel et al. (ICML 2013) learn a representation with little information about the group; this is a linear, private form.
With v the unit vector along the difference of the groups' noisy means, x becomes x - <x, v> v, in which the groups'
means are equal but for the noise. Rows are cut to a public norm first, which bounds what one record adds to a sum. Only
means are made equal: other dependence on the group remains, and a network may find it.

The sums may come from the holder of the protected attribute, so that the developer need not hold it; they are still
charged to this budget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from developer.training.groups import GroupAdder, held_sums
from developer.training.model import TrainingSet, TrainingStep
from developer.training.practice.descent import descent
from developer.training.practice.practice import Halved, PracticeTask, Practised
from fairwall.arrays import Floats
from fairwall.laws.noise.gaussian import gaussian_epsilon, gaussian_multiplier


@dataclass(frozen=True, eq=False)
class Representation:
    """Rows cut to a norm above 0, without the component along a direction, (d,), of norm 1 or 0."""

    norm: float
    direction: Floats

    def __call__(self, features: Floats) -> Floats:
        """Return the representation of rows, (rows, d), of the same shape."""
        rows = self.norm * cut(features, self.norm)
        return np.asarray(rows - np.outer(rows @ self.direction, self.direction))


@dataclass(frozen=True, eq=False)
class Represented(Halved):
    """A network of represented rows."""

    representation: Representation

    def scores(self, features: Floats) -> Floats:
        """Return the probability of label 1."""
        return super().scores(self.representation(features))


def train(task: PracticeTask) -> Practised:
    """Represent the rows, then train by DP-SGD."""
    budget, sums = task.budget, task.sums
    if sums is None:
        multiplier = gaussian_multiplier(budget.statistics * budget.epsilon, budget.delta)
        sums = held_sums(task.groups(), multiplier, np.random.default_rng([task.seed, 1]))
    steps = descent(task, release_cost=sums.cost)
    representation = learn(task.people.features, task.columns, sums)
    people = TrainingSet(representation(task.people.features), task.people.labels)
    network = steps.fit(people, task.seed)
    step = TrainingStep("noisy sum of rows by group", gaussian_epsilon(sums.multiplier, budget.delta), budget.delta)
    return Practised(Represented(network, representation), (step, steps.step), steps.spent)


def learn(features: Floats, columns: tuple[str, ...], sums: GroupAdder) -> Representation:
    """Return the representation without the direction in which the groups' means differ.

    The norm is about that of an ordinary row: standardised numbers and one-hot columns each add 1 to its square.
    """
    norm = math.sqrt(len({name.partition("=")[0] for name in columns}) or features.shape[1])
    means = sums.means(cut(features, norm))
    difference = means[1] - means[0]
    length = float(np.linalg.norm(difference))
    return Representation(norm, difference / length if length > 0 else difference)


def cut(features: Floats, norm: float) -> Floats:
    """Return rows divided by the norm, longer ones by their own, so that none is longer than 1."""
    return np.asarray(features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), norm))
