"""Defences that train once, without tuning: none, pooled rows, private training, and a constant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fairwall.learning.backend import require_pytorch
from fairwall.learning.batches import OVERFLOW, Poisson
from fairwall.learning.defences.split import DefenceTask, deal
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.ensemble import constant as constant_models
from fairwall.learning.private import Private, noise_multiplier
from fairwall.learning.training import train as fit


def train_undefended(task: DefenceTask) -> Ensemble:
    """Train on G_b: the model is released as it is, without a defence."""
    rows = [hand.own for hand in deal(task)]
    return fit(task.split.features, task.split.labels, rows, task.seeds, task.settings.recipe, on_step=task.on_step)


def train_pooled(task: DefenceTask) -> Ensemble:
    """Train on equally many rows of both groups, whatever b is: the model's law does not depend on b at all.

    They are half of ``settings.rows`` from each; without it, the size of the smaller group from each.
    """
    split, settings = task.split, task.settings
    group = split.groups[0]
    members = [np.flatnonzero(group == a) for a in (0, 1)]
    each = min(map(len, members)) if settings.rows is None else max(settings.rows // 2, 1)
    if each > min(map(len, members)):
        raise ValueError(
            f"{each} rows of each group cannot be drawn from groups of {len(members[0])} and {len(members[1])}"
        )
    rows = []
    for seed in task.seeds:
        rng = np.random.default_rng([seed, 1])
        rows.append(np.concatenate([rng.choice(member, each, replace=False) for member in members]))
    return fit(split.features, split.labels, rows, task.seeds, settings.recipe, on_step=task.on_step)


def train_private(task: DefenceTask) -> Ensemble:
    """Train on G_b with (epsilon, delta) spent; neighbours: one record adds something, or nothing.

    Hides each record, but not what the records have in common.
    """
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


def train_constant(task: DefenceTask) -> Ensemble:
    """Return models that score every row by the most common label of both groups' rows together.

    The trivial floor: it hides b, without training.
    """
    label = int(2 * np.sum(task.split.labels == 1) >= len(task.split.labels))
    if task.on_step is not None:
        task.on_step(1, 1)
    return constant_models(task.split.features.shape[1], [label] * len(task.bits))
