"""Fair fine-tuning by the printed protocol ("Fair finetuning mitigates distribution inference attacks", Experiments).

500 iterations on G_b and 100 of fine-tuning, on German 200 and 50; three hidden layers; columns scaled, then every row
scaled to norm 1. The public encoding has scaled the columns already, so that what is left is the rows. An iteration is
read as a step of the optimiser with the batch of 256 that the paper names for DP-SGD; its text says no more. The split
(80% to train on), the ten seeds, and no rehearsal on LSAC are the scenario's to set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.defences import fft, none
from fairwall.learning.defences.split import Progress, Settings, Split
from fairwall.learning.ensemble import Ensemble, unit

# German has 1,000 rows in all, every other table thousands.
_SMALL_TABLE = 1000


def train(
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Train for as many iterations as printed."""
    rows, printed = _printed(split, settings)
    return replace(none.train(rows, bits, seeds, printed, on_step), unit_rows=True)


def tune(
    base: Ensemble,
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Tune for as many iterations as printed."""
    rows, printed = _printed(split, settings)
    return replace(fft.tune(base, rows, bits, seeds, printed, on_step), unit_rows=True)


def _printed(split: Split, settings: Settings) -> tuple[Split, Settings]:
    """Scale the rows, and set what the paper prints."""
    steps, tune_steps = (200, 50) if len(split.labels) <= _SMALL_TABLE else (500, 100)
    recipe = replace(settings.recipe, steps=steps, batch_size=256)
    return replace(split, features=unit(split.features)), replace(settings, recipe=recipe, tune_steps=tune_steps)
