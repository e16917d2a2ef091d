"""The trivial floor: the most common label of both groups' rows together as every row's score. It hides b."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.defences.split import Progress, Settings, Split
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.ensemble import constant as constant_models


def train(
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],
    seeds: Sequence[int],  # noqa: ARG001 - nothing is drawn
    settings: Settings,  # noqa: ARG001 - nor set
    on_step: Progress | None = None,
) -> Ensemble:
    """Train nothing."""
    label = int(2 * np.sum(split.labels == 1) >= len(split.labels))
    if on_step is not None:
        on_step(1, 1)
    return constant_models(split.features.shape[1], [label] * len(bits))
