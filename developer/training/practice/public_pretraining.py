"""Pre-train on public rows, then fine-tune on private ones by DP-SGD ([SD], VII-D).

The public rows have no guarantee. The private steps start where the public ones end.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from developer.training.practice.descent import descent
from developer.training.practice.practice import Halved, PracticeTask, Practised
from fairwall.errors import UserError
from fairwall.learning.batches import shuffled
from fairwall.learning.training import Recipe
from fairwall.learning.training import train as fit

STEPS, BATCH, RATE = 500, 64, 1e-3
"""Steps, batch size and learning rate of the public training."""

FINER = 0.25
"""The fine-tuning's learning rate over the recipe's; at the full rate, noise undoes the public training."""


def train(task: PracticeTask) -> Practised:
    """Train on public rows without noise, then on private rows with noise."""
    public, recipe = task.public, task.settings.recipe
    if public is None:
        raise UserError("this practice needs public rows")
    if public.features.shape[1] != task.people.features.shape[1]:
        raise UserError("the public rows have other features than the private ones")
    steps = descent(task, recipe=replace(recipe, learning_rate=FINER * recipe.learning_rate))
    n = len(public.labels)
    before = Recipe(recipe.layers, STEPS, BATCH, RATE)
    # Not the task's own seed: it determines the draws of noise, which the start of training must not reveal.
    seed = int(np.random.default_rng([task.seed, 1]).integers(2**63))
    start = fit(public.features, public.labels, [shuffled(np.arange(n), min(BATCH, n))], [seed], before)
    network = steps.fit(task.people, task.seed, start=start)
    return Practised(Halved(network), (steps.step,), steps.spent)
