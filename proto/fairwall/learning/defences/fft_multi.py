"""Fair fine-tuning for several attributes at once (the paper's Theorem 3): one penalty for each.

Batches are stratified by the label and all attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.defences import fft, none
from fairwall.learning.defences.split import Progress, Settings, Split, part
from fairwall.learning.ensemble import Ensemble


def train(
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Tune with the sum of the attributes' penalties, each of strength lambda."""
    total = len(seeds) * (settings.recipe.steps + settings.tune_steps)
    base = none.train(split, bits, seeds, settings, part(on_step, 0, total))
    tuning = part(on_step, len(seeds) * settings.recipe.steps, total)
    return fft.tune(base, split, bits, seeds, settings, attributes=len(split.groups), on_step=tuning)
