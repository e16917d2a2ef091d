"""Fair fine-tuning for several attributes at once (the paper's Theorem 3): a penalty and strata for each."""

from __future__ import annotations

from fairwall.learning.defences import fft
from fairwall.learning.defences.split import DefenceTask
from fairwall.learning.ensemble import Ensemble


def tune(base: Ensemble, task: DefenceTask) -> Ensemble:
    """Tune with the sum of the attributes' penalties, each of strength lambda."""
    return fft.tune(base, task, attributes=len(task.split.groups))
