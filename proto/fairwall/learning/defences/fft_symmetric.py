"""Fair fine-tuning whose tuning is the same whichever b: each group fills half of every batch.

What is left of b is the start: how far tuning forgets on which group the model was trained first.
"""

from __future__ import annotations

from dataclasses import replace

from fairwall.learning.defences import fft
from fairwall.learning.defences.split import Task
from fairwall.learning.ensemble import Ensemble


def tune(base: Ensemble, task: Task) -> Ensemble:
    """Tune with rho = 1/2, whatever the settings say."""
    return fft.tune(base, task.with_settings(replace(task.settings, rehearsal=0.5)))
