"""The four neural networks: S-NN, F-NN (fair), DP-NN (private), DPF-NN (both).

A network minimises cross-entropy, and a fair one also the penalty of `developer.training.groups`, whose statistics are
requested again a number of times, evenly spread over the steps. The private ones clip every row's gradient, penalty
included, and add noise to a Poisson batch's sum (Abadi et al., CCS 2016; `fairwall.learning.private`).

One composition accounts for the subsampled steps, and for every request for statistics as a Gaussian release of all
rows. Each group's rates are read by the fair private network only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from developer.training.groups import GroupAccess, row_weights
from developer.training.model import Trained, TrainingBudget, TrainingPromise, TrainingSet, TrainingStep
from fairwall.arrays import Floats
from fairwall.errors import UserError
from fairwall.laws.noise.gaussian import gaussian_epsilon, gaussian_multiplier
from fairwall.learning.batches import OVERFLOW, Batches, Poisson, shuffled
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.penalty import WeightedRows
from fairwall.learning.private import Private, epsilon_spent, noise_multiplier
from fairwall.learning.training import Recipe
from fairwall.learning.training import train as fit

FOLLOW = 0.25
"""Part of the way that the penalty's gap moves to the latest answer; at 1 the gap would swing from sign to sign."""


@dataclass(frozen=True)
class Network:
    """The settings of a network.

    Attributes
    ----------
    recipe : layers, steps, batch size (of a private network on average), learning rate.
    strength : lambda, the weight of the parity penalty; 0 for none.
    tellings : number of requests for the groups' rates.
    clip : the norm at which a private network's gradients are clipped.
    """

    recipe: Recipe
    strength: float = 0.0
    tellings: int = 10
    budget: TrainingBudget | None = None
    clip: float = 1.0

    def __post_init__(self) -> None:
        if not (self.strength >= 0 and self.clip > 0 and 1 <= self.tellings <= self.recipe.steps):
            raise ValueError("lambda is at least 0, the clipping norm above 0, and rates are told once a step at most")
        if self.budget is not None and self.budget.delta <= OVERFLOW:
            raise UserError(f"delta = {self.budget.delta:g}: a private network needs a delta above {OVERFLOW:g}")

    @property
    def every(self) -> int:
        """Steps between two requests."""
        return -(-self.recipe.steps // self.tellings)

    @property
    def asked(self) -> int:
        """Number of requests for rates in all."""
        return -(-self.recipe.steps // self.every)


def own_multiplier(settings: Network) -> float:
    """Return each request's noise over the sensitivity to a record that spends the budget's share; 0 for none."""
    if settings.budget is None:
        return 0.0
    together = gaussian_multiplier(settings.budget.statistics * settings.budget.epsilon, settings.budget.delta)
    return together * math.sqrt(settings.asked)


@dataclass(frozen=True)
class Accounted:
    """The noise of a private network, and its guarantee.

    rate : the probability with which a Poisson batch includes a row.
    noise : the multiplier of a step's noise.
    spent : of all steps, in one composition.
    steps : the steps that read private rows, each by itself: their sum is larger than `spent`.
    """

    rate: float
    noise: float
    spent: TrainingPromise
    steps: tuple[TrainingStep, ...]


def accounted(settings: Network, budget: TrainingBudget, n: int, cost: float) -> Accounted:
    """Return the noise that spends a network's budget on n rows; ``cost`` is the group statistics', as one release."""
    steps, delta = settings.recipe.steps, budget.delta - OVERFLOW
    rate = min(settings.recipe.batch_size / n, 1.0)
    noise = noise_multiplier(budget.epsilon, delta, rate, steps, cost)
    read = [TrainingStep(f"{steps} clipped, noised steps", epsilon_spent(noise, delta, rate, steps, 0.0), delta)]
    if cost > 0:
        read.insert(0, TrainingStep("sums by group", gaussian_epsilon(1 / cost, delta), delta))
    spent = TrainingPromise(epsilon_spent(noise, delta, rate, steps, cost), budget.delta)
    return Accounted(rate, noise, spent, tuple(read))


def train(people: TrainingSet, settings: Network, seed: int, groups: GroupAccess | None = None) -> Trained:
    """Train a network, determined by seed, at least 0, and the other arguments; only a fair one uses `groups`."""
    n, recipe, budget = len(people.labels), settings.recipe, settings.budget
    penalty, cost = None, 0.0
    if settings.strength > 0:
        if groups is None:
            raise UserError("a fair network needs the groups' rates")
        penalty = _penalty(people, settings, groups)
        cost = groups.spent(settings.asked)
    plan: Batches = shuffled(np.arange(n), min(recipe.batch_size, n))
    if budget is None:
        return Trained(fit(people.features, people.labels, [plan], [seed], recipe, penalty=penalty), None)
    found = accounted(settings, budget, n, cost)
    plan = Poisson(np.arange(n), found.rate, recipe.steps)
    private = [Private(found.noise, settings.clip)]
    network = fit(people.features, people.labels, [plan], [seed], recipe, penalty=penalty, private=private)
    return Trained(network, found.spent, found.steps)


def _penalty(people: TrainingSet, settings: Network, groups: GroupAccess) -> WeightedRows:
    followed = 0.0

    def weigh(network: Ensemble, _: Sequence[int]) -> Floats:
        nonlocal followed
        told = groups.rates(network.scores(people.features)[0])
        followed += FOLLOW * (told.gap - followed)
        return row_weights(settings.strength * followed, groups.membership, told.share)[None]

    return WeightedRows(weigh, settings.every)
