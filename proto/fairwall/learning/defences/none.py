"""No defence: the model trained on G_b is released as it is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.defences.split import Progress, Settings, Split, deal
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.training import train as fit


def train(
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Train on G_b."""
    rows = [hand.own for hand in deal(split, bits, seeds, settings)]
    return fit(split.features, split.labels, rows, seeds, settings.recipe, on_step=on_step)
