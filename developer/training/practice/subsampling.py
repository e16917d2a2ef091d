"""Many small batches drawn at random, instead of few large ones: privacy amplified by subsampling.

[SD], VII-B; Abadi et al. (CCS 2016). A step that reads a row with probability q at noise z costs the row about q times
what it would cost at q = 1. All rows have one q, so that this favours no group, whatever the paper says of
"overrepresented" ones; `oversampling` and `group_epsilon` vary q by group.
"""

from __future__ import annotations

from dataclasses import replace

from developer.training.practice.descent import descent
from developer.training.practice.practice import Halved, Practised, Task

SMALLER, MORE = 8, 4
"""How many times smaller a batch is than the recipe's, and how many times more steps there are."""


def train(task: Task) -> Practised:
    """Train by DP-SGD in small batches; the step says what full batches would cost at the same noise."""
    recipe = task.settings.recipe
    small = replace(recipe, batch_size=max(recipe.batch_size // SMALLER, 1), steps=MORE * recipe.steps)
    steps = descent(task, recipe=small)
    step = replace(steps.step, what=f"{steps.named}; full batches at this noise: epsilon {steps.epsilon(1.0):.3g}")
    return Practised(Halved(steps.fit(task.people, task.seed)), (step,), steps.spent)
