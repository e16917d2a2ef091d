"""Fair fine-tuning with half of every batch from each group: only the model before tuning depends on b."""

from __future__ import annotations

from dataclasses import replace

from fairwall.learning.defences import fft
from fairwall.learning.defences.split import DefenceTask
from fairwall.learning.ensemble import Ensemble


def tune(base: Ensemble, task: DefenceTask) -> Ensemble:
    """Tune with rho = 1/2, whatever the settings say."""
    return fft.tune(base, task.with_settings(replace(task.settings, rehearsal=0.5)))
