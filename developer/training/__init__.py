"""Training that is private, fair, or both: the eight models of Table I of [SD], by name.

[SD] is "From Statistical Disclosure Control to Fair AI" (arXiv 2601.17909). It reproduces the table from Pannekoek and
Spigler (arXiv 2102.05975), whose regressions are those of Xu, Yuan and Wu (WWW Companion 2019).
"""

from developer.training.groups import GroupAccess, GroupAdder, GroupRates, held
from developer.training.model import Trained, TrainingBudget, TrainingPromise, TrainingSet
from developer.training.models import MODELS, train
from developer.training.network import Network
from developer.training.regression import Regression

__all__ = [
    "MODELS",
    "GroupAccess",
    "GroupAdder",
    "GroupRates",
    "Network",
    "Regression",
    "Trained",
    "TrainingBudget",
    "TrainingPromise",
    "TrainingSet",
    "held",
    "train",
]
