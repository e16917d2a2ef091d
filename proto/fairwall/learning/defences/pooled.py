"""Pooled retraining: equally many rows of both groups, whatever b is. The model's law does not depend on b at all."""

from __future__ import annotations

import numpy as np

from fairwall.learning.defences.split import DefenceTask
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.training import train as fit


def train(task: DefenceTask) -> Ensemble:
    """Train on half of ``settings.rows`` from each group; without it, on the size of the smaller group from each."""
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
