"""Private training on G_b, then fair fine-tuning of the private model.

Fine-tuning is not private. Without rehearsal it reads no row of G_b, and what was promised to G_b's people still holds;
with rehearsal it reads them again, and it does not. G_{1-b}'s people are promised nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.defences import dp_sgd, fft
from fairwall.learning.defences.split import Progress, Settings, Split, part
from fairwall.learning.ensemble import Ensemble


def train(
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Train privately, then tune."""
    total = len(seeds) * (settings.private_recipe.steps + settings.tune_steps)
    base = dp_sgd.train(split, bits, seeds, settings, part(on_step, 0, total))
    tuning = part(on_step, len(seeds) * settings.private_recipe.steps, total)
    return fft.tune(base, split, bits, seeds, settings, on_step=tuning)
