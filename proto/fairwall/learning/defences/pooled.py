"""Pooled retraining: equally many rows of both groups, whatever b is. The model's law does not depend on b at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fairwall.learning.defences.split import Progress, Settings, Split
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.training import train as fit


def train(
    split: Split,
    bits: Sequence[int] | NDArray[np.integer],  # noqa: ARG001 - that is the defence
    seeds: Sequence[int],
    settings: Settings,
    on_step: Progress | None = None,
) -> Ensemble:
    """Train on half of ``settings.rows`` from each group; without it, on as many as the smaller group has."""
    group = split.groups[0]
    members = [np.flatnonzero(group == a) for a in (0, 1)]
    each = min(map(len, members)) if settings.rows is None else max(settings.rows // 2, 1)
    if each > min(map(len, members)):
        raise ValueError(
            f"{each} rows of each group cannot be drawn from groups of {len(members[0])} and {len(members[1])}"
        )
    rows = []
    for seed in seeds:
        rng = np.random.default_rng([seed, 1])
        rows.append(np.concatenate([rng.choice(member, each, replace=False) for member in members]))
    return fit(split.features, split.labels, rows, seeds, settings.recipe, on_step=on_step)
