"""The eight models by name, trained with the protected attribute or with sums by group from compliance.

Layers, steps and strengths were chosen on Adult, by hand; the choice is not accounted for.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from developer.training import network, regression
from developer.training.groups import GroupAdder, held, told
from developer.training.model import Trained, TrainingBudget, TrainingPromise, TrainingSet
from developer.training.network import Network
from developer.training.regression import Regression
from fairwall.arrays import Bytes
from fairwall.errors import UserError
from fairwall.laws.noise.gaussian import gaussian_epsilon
from fairwall.learning.training import Recipe

_PLAIN = Recipe(layers=(64, 32), steps=1500, batch_size=256, learning_rate=1e-3)

MODELS: dict[str, Network | Regression] = {
    "s-nn": Network(_PLAIN),
    "f-nn": Network(_PLAIN, strength=3.5),
    "dp-nn": Network(Recipe((16,), 100, 8192, 2e-2), budget=TrainingBudget()),
    # At a smaller rate and batch the gap swings less between two requests.
    "dpf-nn": Network(Recipe((32,), 100, 4096, 1e-2), strength=15.0, budget=TrainingBudget()),
    "lr": Regression(),
    "fair-lr": Regression(strength=1.0, tellings=3),
    "priv-lr": Regression(budget=TrainingBudget()),
    "pflr*": Regression(strength=100.0, budget=TrainingBudget(), kappa=0.05),
}
"""Table I of [SD]; the budgets are its epsilon = 0.1 and delta = 1e-5."""


def train(people: TrainingSet, settings: Network | Regression, seed: int, protected: Bytes | None = None) -> Trained:
    """Train a model; only fair models read the protected attribute, (n,), 1 = advantaged, that the developer holds."""
    if settings.strength == 0:
        protected = None
    elif protected is None or len(protected) != len(people.labels):
        raise UserError("a fair model needs the group of every row")
    if isinstance(settings, Regression):
        between = None if protected is None else regression.held_between(settings, protected, seed)
        return regression.train(people, settings, seed, between)
    groups = None
    if protected is not None:
        groups = held(protected, network.own_multiplier(settings), np.random.default_rng([seed, 1]))
    return network.train(people, settings, seed, groups)


def chosen(
    name: str,
    budget: TrainingBudget,
    strength: float | None = None,
    steps: int | None = None,
    batch: int | None = None,
) -> Network | Regression:
    """Return a model's settings with another budget (if private), strength (if fair), steps and batch (networks)."""
    settings = MODELS[name]
    if settings.budget is not None:
        settings = replace(settings, budget=budget)
    if strength is not None and settings.strength > 0:
        settings = replace(settings, strength=strength)
    if isinstance(settings, Network):
        recipe = settings.recipe
        recipe = replace(recipe, steps=steps or recipe.steps, batch_size=batch or recipe.batch_size)
        settings = replace(settings, recipe=recipe, tellings=min(settings.tellings, recipe.steps))
    return settings


def askings(settings: Network | Regression) -> int:
    """Return the number of requests for sums by group during a model's training by `train_told`."""
    if settings.strength == 0:
        return 0
    # A network's first request is for the membership.
    return 1 + settings.asked if isinstance(settings, Network) else settings.tellings


def promised(settings: Network | Regression, n: int, statistics_cost: float | None = None) -> TrainingPromise | None:
    """Return the guarantee of a model on n rows, without training it; None for none.

    `statistics_cost` is that of another party's sums by group, as one Gaussian release.
    """
    if settings.budget is None:
        return None
    if isinstance(settings, Regression):
        return TrainingPromise(settings.budget.epsilon, settings.budget.delta)
    cost = 0.0
    if settings.strength > 0:
        cost = (
            math.sqrt(settings.asked) / network.own_multiplier(settings) if statistics_cost is None else statistics_cost
        )
    return network.accounted(settings, settings.budget, n, cost).spent


def train_told(people: TrainingSet, settings: Network | Regression, seed: int, sums: GroupAdder) -> Trained:
    """Train a fair model with `askings` requests for sums by group, without the protected attribute.

    The sums' cost is taken from the budget first; the budget's own share for statistics does not count.
    """
    if isinstance(settings, Network):
        return network.train(people, settings, seed, told(sums, people.features))
    if settings.budget is not None:
        settings = replace(settings, budget=_after(sums, settings.budget))
    return regression.train(people, settings, seed, regression.told_between(settings, sums, people.features))


def _after(sums: GroupAdder, budget: TrainingBudget) -> TrainingBudget:
    """Return the budget with the statistics' share set to the cost of one request, at half of delta."""
    if sums.multiplier == 0 or budget.delta == 0:
        raise UserError("noise on the groups' sums has a delta: a private model that is told them needs one above 0")
    cost = gaussian_epsilon(sums.multiplier, budget.delta / 2)
    if cost >= budget.epsilon:
        raise UserError(
            f"the groups' sums cost epsilon {cost:.3g}, and leave nothing of {budget.epsilon:,g} to train with"
        )
    return replace(budget, statistics=cost / budget.epsilon)
