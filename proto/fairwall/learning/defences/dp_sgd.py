"""Differentially private training on G_b: hides each record, but not what the records have in common."""

from __future__ import annotations

from dataclasses import replace

from fairwall.learning.backend import require_pytorch
from fairwall.learning.batches import OVERFLOW, Poisson
from fairwall.learning.defences.split import DefenceTask, deal
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.private import Private, noise_multiplier
from fairwall.learning.training import train as fit


def train(task: DefenceTask) -> Ensemble:
    """Train on G_b with (epsilon, delta) spent; neighbours: one record adds something, or nothing."""
    require_pytorch()  # before the search for the noise, which takes seconds
    split, settings = task.split, task.settings
    recipe = replace(settings.private_recipe, layers=settings.recipe.layers)
    batches, noises = [], []
    for hand in deal(task):
        rate = min(recipe.batch_size / len(hand.own), 1.0)
        batches.append(Poisson(hand.own, rate, recipe.steps))
        # Delta pays for the rows that a batch may lose for want of room.
        noise = noise_multiplier(settings.epsilon, settings.delta - OVERFLOW, rate, recipe.steps)
        noises.append(Private(noise, settings.clip, settings.adaptive_clipping))
    return fit(split.features, split.labels, batches, task.seeds, recipe, private=noises, on_step=task.on_step)
