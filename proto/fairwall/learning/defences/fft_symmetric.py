"""Fair fine-tuning whose tuning is the same whichever b: each group fills half of every batch.

What is left of b is the start: how far tuning forgets on which group the model was trained first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.defences import fft
from fairwall.learning.defences.split import Progress, Settings, Split
from fairwall.learning.ensemble import Ensemble


def tune(
    base: Ensemble,
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Tune with rho = 1/2, whatever the settings say."""
    return fft.tune(base, split, bits, seeds, replace(settings, rehearsal=0.5), on_step)
