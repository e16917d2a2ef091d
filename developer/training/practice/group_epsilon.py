"""Give each group an epsilon of its own, by how often its rows are read.

[SD], VII-B, takes 2 for the minority and 0.5 for the majority. Individualised privacy by sampling is of Boenisch, Mühl,
Dziedzic, Rinberg and Papernot ("Have it your way", NeurIPS 2023): one noise, and for each group the rate of Poisson
sampling with which its own epsilon is met.

**It weakens the disadvantaged group's promise** to `RATIO` times the budget's epsilon, so that the model learns more
from its rows: the budget holds for the advantaged group alone. That somebody is of one group or the other is covered by
the weaker promise at best.
"""

from __future__ import annotations

from developer.training.practice.descent import Descent, descent
from developer.training.practice.oversampling import by_rates
from developer.training.practice.practice import Practised, Task

RATIO = 4.0
"""The disadvantaged group's epsilon over the budget's, which is the advantaged group's: 2 over 0.5."""
_BISECTIONS = 20


def train(task: Task) -> Practised:
    """Train by DP-SGD with the larger epsilon for the disadvantaged.

    Raises
    ------
    UserError
        If groups are not held, or one has no row.
    """
    task.groups()
    steps = descent(task, strata=2)
    return by_rates(task, steps, (rate_for(steps, RATIO * task.budget.epsilon), steps.rate))


def rate_for(steps: Descent, epsilon: float) -> float:
    """Find the largest rate, in [steps.rate, 1], at which the steps cost a row no more than epsilon."""
    if steps.epsilon(1.0) <= epsilon:
        return 1.0
    low, high = steps.rate, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if steps.epsilon(middle) <= epsilon else (low, middle)
    return low
