"""Training that is private, fair, or both: the eight models of Table I of [SD], by name.

[SD] is "From Statistical Disclosure Control to Fair AI" (arXiv 2601.17909). It reproduces the table from Pannekoek and
Spigler (arXiv 2102.05975), whose regressions are those of Xu, Yuan and Wu (WWW Companion 2019).
"""

from developer.training.groups import GroupRates, Groups, GroupSums, held
from developer.training.model import Budget, People, Spent, Trained
from developer.training.models import MODELS, train
from developer.training.network import Network
from developer.training.regression import Regression

__all__ = [
    "MODELS",
    "Budget",
    "GroupRates",
    "GroupSums",
    "Groups",
    "Network",
    "People",
    "Regression",
    "Spent",
    "Trained",
    "held",
    "train",
]
