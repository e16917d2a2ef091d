"""Read the disadvantaged group's rows more often: each group has its own sampling rate and guarantee.

Neither rate, nor the divisor of a step, follows from the groups' sizes, which are private.

**Oversampling** ([SD], VII-A) pays with noise: enough for the disadvantaged group's guarantee, the weaker one, to be
within the budget.

**An epsilon for each group** ([SD], VII-B, takes 2 for the minority and 0.5 for the majority). Individualised privacy
by sampling is of Boenisch, Mühl, Dziedzic, Rinberg and Papernot ("Have it your way", NeurIPS 2023): one noise, and for
each group the rate of Poisson sampling that meets its epsilon. **It weakens the disadvantaged group's guarantee** to
`RATIO` times the budget's epsilon, so that the model learns more from its rows: the budget holds for the advantaged
group alone. Membership of a group is covered by the weaker guarantee at best.
"""

from __future__ import annotations

import numpy as np

from developer.training.model import TrainingPromise, TrainingStep
from developer.training.practice.descent import Descent, descent
from developer.training.practice.practice import Halved, PracticeTask, Practised
from fairwall.learning.batches import Poisson, PoissonStrata

OFTEN = 2.0
"""Oversampling: the factor by which a step reads a row of the disadvantaged group more often."""

RATIO = 4.0
"""The disadvantaged group's epsilon over the budget's, which is the advantaged group's: 2 over 0.5."""

_BISECTIONS = 20


def oversampling(task: PracticeTask) -> Practised:
    """Train by DP-SGD at twice the rate for the disadvantaged."""
    task.groups()
    steps = descent(task, often=OFTEN, strata=2)
    usual = min(task.settings.recipe.batch_size / len(task.people.labels), 1.0)
    return by_rates(task, steps, (steps.rate, usual))


def group_epsilon(task: PracticeTask) -> Practised:
    """Train by DP-SGD with the larger epsilon for the disadvantaged."""
    task.groups()
    steps = descent(task, strata=2)
    return by_rates(task, steps, (rate_for(steps, RATIO * task.budget.epsilon), steps.rate))


def rate_for(steps: Descent, epsilon: float) -> float:
    """Return the largest rate, in [steps.rate, 1], at which the steps cost a row no more than epsilon."""
    if steps.epsilon(1.0) <= epsilon:
        return 1.0
    low, high = steps.rate, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if steps.epsilon(middle) <= epsilon else (low, middle)
    return low


def by_rates(task: PracticeTask, steps: Descent, rates: tuple[float, float]) -> Practised:
    """Train with a sampling rate for each group, the disadvantaged one's first, and account for each."""
    protected, count = task.groups(), steps.recipe.steps
    parts = tuple(Poisson(np.flatnonzero(protected == group), rates[group], count) for group in (0, 1))
    plan = PoissonStrata(parts, rates[1] * len(protected))
    network = steps.fit(task.people, task.seed, plan)
    told = tuple(
        TrainingStep(
            f"DP-SGD, {count:,} steps, each reading a row of the {of} with probability {rate:.3g}",
            steps.epsilon(rate),
            steps.delta,
            of,
        )
        for of, rate in zip(("disadvantaged", "advantaged"), rates, strict=True)
    )
    first, second = (TrainingPromise(step.epsilon, step.delta) for step in told)
    weaker = first if first.epsilon >= second.epsilon else second
    return Practised(Halved(network), told, weaker, (first, second))
