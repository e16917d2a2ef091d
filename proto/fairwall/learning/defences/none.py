"""No defence: the model trained on G_b is released as it is."""

from __future__ import annotations

from fairwall.learning.defences.split import DefenceTask, deal
from fairwall.learning.ensemble import Ensemble
from fairwall.learning.training import train as fit


def train(task: DefenceTask) -> Ensemble:
    """Train on G_b."""
    rows = [hand.own for hand in deal(task)]
    return fit(task.split.features, task.split.labels, rows, task.seeds, task.settings.recipe, on_step=task.on_step)
