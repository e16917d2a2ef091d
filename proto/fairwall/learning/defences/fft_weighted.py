"""Fair fine-tuning whose penalty weighs each label's gap by its possible leakage.

The paper's proof has ``sum over y of P(y) |P(A=1|y,D0) - P(A=1|y,D1)| gap_y`` before it takes the larger gap out of the
sum. Those weights, with P(y) averaged over the two distributions, are the importance of a label's gap; for pure groups
and mixtures of equal purity they are proportional to P(y) if labels are equally frequent in both groups. They are
scaled to sum to 1, so that lambda means the same as in ``fft``.
"""

from __future__ import annotations

import numpy as np

from fairwall.learning.defences import fft
from fairwall.learning.defences.split import DefenceTask
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.fairness import shifts


def tune(base: Ensemble, task: DefenceTask) -> Ensemble:
    """Tune with the weighted sum of both labels' gaps instead of the larger one."""
    split, settings = task.split, task.settings
    group = split.groups[0]
    # P(a | y, D_d) follows from the purity and the labels' frequencies in the groups.
    rates = np.array([[np.mean(split.labels[group == a] == y) for a in (0, 1)] for y in (0, 1)])
    share = np.array([[settings.purity, 1 - settings.purity], [1 - settings.purity, settings.purity]])
    weights = shifts(rates[None, :, :] * share[:, None, :])
    weights = weights / weights.sum() if weights.sum() > 0 else np.full(2, 0.5)
    pair = (float(weights[0]), float(weights[1]))
    return fft.tune(base, task, weights=pair)
