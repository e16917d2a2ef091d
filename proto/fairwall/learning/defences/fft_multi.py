"""Fair fine-tuning for several attributes at once (the paper's Theorem 3): one penalty for each.

Batches are stratified by the label and all attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    """Tune with the sum of the attributes' penalties, each of strength lambda."""
    return fft.tune(base, split, bits, seeds, settings, on_step, attributes=len(split.groups))
