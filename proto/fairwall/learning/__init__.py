"""Public training algorithms of both sides: batched ensembles of small networks, and measures of these."""

from fairwall.learning.backend import TrainingUnavailable
from fairwall.learning.batches import Batches, Poisson, Shuffled, shuffled, stratified
from fairwall.learning.ensemble import Ensemble, constant, together
from fairwall.learning.penalty import EqualizedOdds, WeightedRows
from fairwall.learning.private import Private, epsilon_spent, noise_multiplier
from fairwall.learning.training import Recipe, train

__all__ = [
    "Batches",
    "Ensemble",
    "EqualizedOdds",
    "Poisson",
    "Private",
    "Recipe",
    "Shuffled",
    "TrainingUnavailable",
    "WeightedRows",
    "constant",
    "epsilon_spent",
    "noise_multiplier",
    "shuffled",
    "stratified",
    "together",
    "train",
]
