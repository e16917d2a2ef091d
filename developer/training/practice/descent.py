"""DP-SGD for the practices, with what stands beside it in the accounting (Abadi et al., CCS 2016); and by it alone.

Gaussian releases of all rows that a practice makes beside the training steps go into one composition with them: their
privacy loss is that of one Gaussian release whose sensitivity over standard deviation is the root of the sum of squares
(``beside``). They may depend on one another's outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from developer.training.model import Budget, People, Spent, Step
from developer.training.practice.practice import Halved, Practised, Task
from fairwall.errors import UserError
from fairwall.learning.batches import OVERFLOW, Batches, Poisson
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.private import Private, epsilon_spent, noise_multiplier
from fairwall.learning.training import Recipe
from fairwall.learning.training import train as fit

SMALLER, MORE = 8, 4
"""Subsampling: how many times smaller a batch is than the recipe's, and how many times more steps there are."""


@dataclass(frozen=True)
class Descent:
    """Steps of DP-SGD that keep within a budget.

    Attributes
    ----------
    recipe : layers, steps, learning rate.
    rate : with what probability a step reads a row, in (0, 1]; the largest where rows have several.
    noise : the noise multiplier.
    clip : the norm at which gradients are clipped.
    beside : of the Gaussian releases beside the steps.
    delta : of the budget.
    strata : how many parts a batch has, each with room for its rows (`OVERFLOW`).
    """

    recipe: Recipe
    rate: float
    noise: float
    clip: float
    beside: float
    delta: float
    strata: int = 1

    def epsilon(self, rate: float | None = None, beside: float | None = None) -> float:
        """Account for the steps, for rows of another rate or with other releases beside them than planned."""
        rate, beside = self.rate if rate is None else rate, self.beside if beside is None else beside
        return epsilon_spent(self.noise, self.delta - self.strata * OVERFLOW, rate, self.recipe.steps, beside)

    @property
    def spent(self) -> Spent:
        """What the steps and the releases beside them come to."""
        return Spent(self.epsilon(), self.delta)

    @property
    def step(self) -> Step:
        """What the steps alone come to."""
        return Step(self.named, self.epsilon(beside=0.0), self.delta)

    @property
    def named(self) -> str:
        """The steps in words."""
        return f"DP-SGD, {self.recipe.steps:,} steps, each reading a row with probability {self.rate:.3g}"

    def fit(
        self,
        people: People,
        seed: int,
        plan: Batches | None = None,
        *,
        adaptive: bool = False,
        start: Ensemble | None = None,
    ) -> Ensemble:
        """Train one network; its batches hold every row at the one rate unless there is another plan."""
        plan = Poisson(np.arange(len(people.labels)), self.rate, self.recipe.steps) if plan is None else plan
        private = [Private(self.noise, self.clip, adaptive)]
        return fit(people.features, people.labels, [plan], [seed], self.recipe, private=private, start=start)


def descent(
    task: Task,
    *,
    beside: float = 0.0,
    recipe: Recipe | None = None,
    rows: int | None = None,
    budget: Budget | None = None,
    often: float = 1.0,
    strata: int = 1,
) -> Descent:
    """Find the noise with which a task's steps keep its budget.

    Parameters
    ----------
    beside : of the Gaussian releases beside the steps.
    recipe : another one than the task's.
    rows : how many rows there are to draw from, if others than the task's people.
    budget : another one than the task's.
    often : how much more often than by the recipe the most frequent rows are read, at least 1.
    strata : how many parts the batches have.
    """
    budget = task.budget if budget is None else budget
    settings = replace(task.settings, budget=budget)  # which refuses too small a delta
    recipe = settings.recipe if recipe is None else recipe
    rows = len(task.people.labels) if rows is None else rows
    rate = min(often * recipe.batch_size / rows, 1.0)
    try:
        noise = noise_multiplier(budget.epsilon, budget.delta - strata * OVERFLOW, rate, recipe.steps, beside)
    except ValueError as none:
        beyond = ", with what else is told about the rows" if beside > 0 else ""
        raise UserError(f"epsilon = {budget.epsilon:,g}: no noise of up to 1,000 norms keeps it{beyond}") from none
    return Descent(recipe, rate, noise, settings.clip, beside, budget.delta, strata)


def plain(task: Task) -> Practised:
    """Train by DP-SGD, and decide at 1/2: the private network as it is, against which every practice is held."""
    steps = descent(task)
    return Practised(Halved(steps.fit(task.people, task.seed)), (steps.step,), steps.spent)


def adaptive_clipping(task: Task) -> Practised:
    """Train at a norm that is adapted with each step, and starts at the task's ([SD], VII-D).

    The clipping norm follows the median of the gradients' norms (Andrew, Thakkar, McMahan, Ramaswamy, NeurIPS 2021). A
    step releases, beside the gradient, a noisy count of rows below the norm; both are one Gaussian release at the noise
    multiplier that is accounted for (`fairwall.learning.private`).
    """
    steps = descent(task)
    step = replace(steps.step, what=f"{steps.named}; with the gradient, a count of rows below the clipping norm")
    return Practised(Halved(steps.fit(task.people, task.seed, adaptive=True)), (step,), steps.spent)


def subsampling(task: Task) -> Practised:
    """Train in many small batches, instead of few large ones: privacy amplified by subsampling ([SD], VII-B).

    A step that reads a row with probability q at noise z costs the row about q times what it would cost at q = 1; the
    step says what full batches would cost at the same noise. All rows have one q, so that this favours no group,
    whatever the paper says of "overrepresented" ones; `rates` varies q by group.
    """
    recipe = task.settings.recipe
    small = replace(recipe, batch_size=max(recipe.batch_size // SMALLER, 1), steps=MORE * recipe.steps)
    steps = descent(task, recipe=small)
    step = replace(steps.step, what=f"{steps.named}; full batches at this noise: epsilon {steps.epsilon(1.0):,.4g}")
    return Practised(Halved(steps.fit(task.people, task.seed)), (step,), steps.spent)
