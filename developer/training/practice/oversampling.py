"""Read the disadvantaged group's rows more often, and pay for it with noise ([SD], VII-A).

Each group's rows are sampled at a rate of their own, so that each has a guarantee of its own: the noise is such that
the disadvantaged group's, the weaker one, is within the budget. `group_epsilon` lets it exceed the budget instead.
Neither rate, nor what a step divides by, follows from the groups' sizes, which are private.
"""

from __future__ import annotations

import numpy as np

from developer.training.model import Spent, Step
from developer.training.practice.descent import Descent, descent
from developer.training.practice.practice import Halved, Practised, Task
from fairwall.learning.batches import Poisson, PoissonStrata

OFTEN = 2.0
"""How many times as often a step reads a row of the disadvantaged group."""


def train(task: Task) -> Practised:
    """Train by DP-SGD at twice the rate for the disadvantaged.

    Raises
    ------
    UserError
        If groups are not held, or one has no row.
    """
    task.groups()
    steps = descent(task, often=OFTEN, strata=2)
    usual = min(task.settings.recipe.batch_size / len(task.people.labels), 1.0)
    return by_rates(task, steps, (steps.rate, usual))


def by_rates(task: Task, steps: Descent, rates: tuple[float, float]) -> Practised:
    """Train with a sampling rate for each group, the disadvantaged one's first, and account for each."""
    protected, count = task.groups(), steps.recipe.steps
    parts = tuple(Poisson(np.flatnonzero(protected == group), rates[group], count) for group in (0, 1))
    plan = PoissonStrata(parts, rates[1] * len(protected))
    network = steps.fit(task.people, task.seed, plan)
    told = tuple(
        Step(
            f"DP-SGD, {count:,} steps, each reading a row of the {of} with probability {rate:.3g}",
            steps.epsilon(rate),
            steps.delta,
            of,
        )
        for of, rate in zip(("disadvantaged", "advantaged"), rates, strict=True)
    )
    first, second = (Spent(step.epsilon, step.delta) for step in told)
    weaker = first if first.epsilon >= second.epsilon else second
    return Practised(Halved(network), told, weaker, (first, second))
