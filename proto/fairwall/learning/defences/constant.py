"""The trivial floor: every row's score is the most common label of both groups' rows together. It hides b."""

from __future__ import annotations

import numpy as np

from fairwall.learning.defences.split import DefenceTask
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.ensemble import constant as constant_models


def train(task: DefenceTask) -> Ensemble:
    """Return constant models, without training."""
    label = int(2 * np.sum(task.split.labels == 1) >= len(task.split.labels))
    if task.on_step is not None:
        task.on_step(1, 1)
    return constant_models(task.split.features.shape[1], [label] * len(task.bits))
