"""DP-SGD for the practices, accounted together with other Gaussian releases (Abadi et al., CCS 2016); and DP-SGD alone.

Gaussian releases of all rows that a practice makes beside the training steps go into one composition with them: their
privacy loss is that of one Gaussian release whose sensitivity over standard deviation is the root of the sum of squares
(``beside``). They may depend on one another's outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from developer.training.model import TrainingBudget, TrainingPromise, TrainingSet, TrainingStep
from developer.training.practice.practice import Halved, PracticeTask, Practised
from fairwall.errors import UserError
from fairwall.learning.batches import OVERFLOW, Batches, Poisson
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.private import Private, epsilon_spent, noise_multiplier
from fairwall.learning.training import Recipe
from fairwall.learning.training import train as fit

SMALLER, MORE = 8, 4
"""Subsampling: the factors by which a batch is smaller than the recipe's, and by which steps are more."""


@dataclass(frozen=True)
class Descent:
    """Steps of DP-SGD that keep within a budget.

    Attributes
    ----------
    recipe : layers, steps, learning rate.
    rate : probability that a step reads a row, in (0, 1]; the largest where rows have several.
    noise : the noise multiplier.
    clip : the norm at which gradients are clipped.
    beside : sensitivity over standard deviation of the other Gaussian releases.
    delta : of the budget.
    strata : number of parts of a batch, each with room for its rows (`OVERFLOW`).
    """

    recipe: Recipe
    rate: float
    noise: float
    clip: float
    beside: float
    delta: float
    strata: int = 1

    def epsilon(self, rate: float | None = None, release_cost: float | None = None) -> float:
        """Return the epsilon of the steps for rows of another rate, or with other releases than planned."""
        rate, release_cost = self.rate if rate is None else rate, self.beside if release_cost is None else release_cost
        return epsilon_spent(self.noise, self.delta - self.strata * OVERFLOW, rate, self.recipe.steps, release_cost)

    @property
    def spent(self) -> TrainingPromise:
        """The guarantee of the steps and the other releases together."""
        return TrainingPromise(self.epsilon(), self.delta)

    @property
    def step(self) -> TrainingStep:
        """The cost of the steps alone."""
        return TrainingStep(self.named, self.epsilon(release_cost=0.0), self.delta)

    @property
    def named(self) -> str:
        """The steps in words."""
        return f"DP-SGD, {self.recipe.steps:,} steps, each reading a row with probability {self.rate:.3g}"

    def fit(
        self,
        people: TrainingSet,
        seed: int,
        plan: Batches | None = None,
        *,
        adaptive: bool = False,
        start: Ensemble | None = None,
    ) -> Ensemble:
        """Train one network; without a plan, its batches hold every row at the one rate."""
        plan = Poisson(np.arange(len(people.labels)), self.rate, self.recipe.steps) if plan is None else plan
        private = [Private(self.noise, self.clip, adaptive)]
        return fit(people.features, people.labels, [plan], [seed], self.recipe, private=private, start=start)


def descent(
    task: PracticeTask,
    *,
    release_cost: float = 0.0,
    recipe: Recipe | None = None,
    rows: int | None = None,
    budget: TrainingBudget | None = None,
    often: float = 1.0,
    strata: int = 1,
) -> Descent:
    """Return steps with the noise that keeps a task's budget.

    Parameters
    ----------
    release_cost : sensitivity over standard deviation of the other Gaussian releases.
    recipe : in place of the task's.
    rows : number of rows to draw from, by default the task's people.
    budget : in place of the task's.
    often : factor, at least 1, by which the most frequent rows are read more often than by the recipe.
    strata : number of parts of a batch.
    """
    budget = task.budget if budget is None else budget
    settings = replace(task.settings, budget=budget)  # which refuses too small a delta
    recipe = settings.recipe if recipe is None else recipe
    rows = len(task.people.labels) if rows is None else rows
    rate = min(often * recipe.batch_size / rows, 1.0)
    try:
        noise = noise_multiplier(budget.epsilon, budget.delta - strata * OVERFLOW, rate, recipe.steps, release_cost)
    except ValueError as none:
        beyond = ", with what else is told about the rows" if release_cost > 0 else ""
        raise UserError(f"epsilon = {budget.epsilon:,g}: no noise of up to 1,000 norms keeps it{beyond}") from none
    return Descent(recipe, rate, noise, settings.clip, release_cost, budget.delta, strata)


def plain(task: PracticeTask) -> Practised:
    """Train by DP-SGD, and decide at 1/2: the baseline of every practice."""
    steps = descent(task)
    return Practised(Halved(steps.fit(task.people, task.seed)), (steps.step,), steps.spent)


def adaptive_clipping(task: PracticeTask) -> Practised:
    """Train with a clipping norm that starts at the task's and adapts with each step ([SD], VII-D).

    The clipping norm follows the median of the gradients' norms (Andrew, Thakkar, McMahan, Ramaswamy, NeurIPS 2021). A
    step releases, beside the gradient, a noisy count of rows below the norm; both are one Gaussian release at the noise
    multiplier that is accounted for (`fairwall.learning.private`).
    """
    steps = descent(task)
    step = replace(steps.step, what=f"{steps.named}; with the gradient, a count of rows below the clipping norm")
    return Practised(Halved(steps.fit(task.people, task.seed, adaptive=True)), (step,), steps.spent)


def subsampling(task: PracticeTask) -> Practised:
    """Train in many small batches, instead of few large ones: privacy amplified by subsampling ([SD], VII-B).

    A step that reads a row with probability q at noise z costs the row about q times what it would cost at q = 1; the
    step's description states the cost of full batches at the same noise. All rows have one q, so this favours no group,
    whatever the paper says of "overrepresented" ones; `rates` varies q by group.
    """
    recipe = task.settings.recipe
    small = replace(recipe, batch_size=max(recipe.batch_size // SMALLER, 1), steps=MORE * recipe.steps)
    steps = descent(task, recipe=small)
    step = replace(steps.step, what=f"{steps.named}; full batches at this noise: epsilon {steps.epsilon(1.0):,.4g}")
    return Practised(Halved(steps.fit(task.people, task.seed)), (step,), steps.spent)
