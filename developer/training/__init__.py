"""Training what is released: the defences, and the procedure that decides whether fair fine-tuning is released.

The defences stand in ``fairwall.learning.defences``: an adversary that adapts trains shadow models with the same ones,
and the parties never import one another.
"""

from developer.training.procedure import TAU, Deployment, deploy
from fairwall.learning.defences import DEFENCES, Defence, Settings, Split

__all__ = ["DEFENCES", "TAU", "Defence", "Deployment", "Settings", "Split", "deploy"]
