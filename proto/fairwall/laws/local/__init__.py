"""Local differential privacy: the protocols' output distributions, their costs, and the split of a budget.

Compliance samples from these distributions, the developer guesses by them, the simulator checks them by listing every
output.
"""

from fairwall.laws.local.budgets import EPSILON_MAX, SPLITS, LocalPrivacyError, split, uniform_at_k_based
from fairwall.laws.local.encodings import Bits, EncodingDistribution, Flips, Numbers, Subsets, enumerated_loss
from fairwall.laws.local.protocols import CLEAN, LOCAL_LAWS, LocalLaw, the_threshold

__all__ = [
    "CLEAN",
    "EPSILON_MAX",
    "LOCAL_LAWS",
    "SPLITS",
    "Bits",
    "EncodingDistribution",
    "Flips",
    "LocalLaw",
    "LocalPrivacyError",
    "Numbers",
    "Subsets",
    "enumerated_loss",
    "split",
    "the_threshold",
    "uniform_at_k_based",
]
