"""Differentially private training on G_b: it hides each record, and not what the records have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.batches import OVERFLOW, Poisson
from fairwall.learning.defences.split import Progress, Settings, Split, deal
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.private import Private, noise_multiplier
from fairwall.learning.training import train as fit


def train(
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Train on G_b with (epsilon, delta) spent; the neighbour relation is one record more or less."""
    recipe = replace(settings.private_recipe, layers=settings.recipe.layers)
    batches, noises = [], []
    for hand in deal(split, bits, seeds, settings):
        rate = min(recipe.batch_size / len(hand.own), 1.0)
        batches.append(Poisson(hand.own, rate, recipe.steps))
        # What a batch may lose for want of room is paid for in delta.
        noise = noise_multiplier(settings.epsilon, settings.delta - OVERFLOW, rate, recipe.steps)
        noises.append(Private(noise, settings.clip, settings.adaptive_clipping))
    return fit(split.features, split.labels, batches, seeds, recipe, private=noises, on_step=on_step)
