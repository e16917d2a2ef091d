"""DP-SGD for the practices, with what stands beside it in the accounting (Abadi et al., CCS 2016).

Gaussian releases of all rows that a practice makes beside the training steps go into one composition with them: their
privacy loss is that of one Gaussian release whose sensitivity over standard deviation is the root of the sum of squares
(``beside``). They may depend on one another's outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from developer.training.model import Budget, People, Spent, Step
from developer.training.practice.practice import Task
from fairwall.errors import UserError
from fairwall.learning.batches import OVERFLOW, Batches, Poisson
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.private import Private, epsilon_spent, noise_multiplier
from fairwall.learning.training import Recipe
from fairwall.learning.training import train as fit


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

    Raises
    ------
    UserError
        If epsilon is too small, for the releases beside the steps or at all, or delta for batches drawn at random.
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
        raise UserError(f"epsilon = {budget.epsilon:g}: no noise of up to 1,000 norms keeps it{beyond}") from none
    return Descent(recipe, rate, noise, settings.clip, beside, budget.delta, strata)
