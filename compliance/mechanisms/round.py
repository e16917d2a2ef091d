"""No protection: the gaps to two decimals, which many a compliance team would call anonymous."""

from dataclasses import dataclass

import numpy as np

from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.promise import ByRecord, require_budget
from compliance.noise.sampling import Noise
from fairwall.laws.precision import DECIMALS


@dataclass(frozen=True)
class Round(ByRecord):
    """A mechanism of rounded gaps, at an infinite price: different answers tell two neighbours apart.

    A known-bad subject for privacy tests.
    """

    name: str = "round"
    title: str = "rounded answers"
    guarantee: Guarantee = "none"

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the rounded gaps, also at an infinite epsilon, which is this mechanism's price."""
        require_budget(epsilon, delta)
        # Adding 0.0 turns -0.0 into 0.0.
        return MechanismAnswer(np.round(question.gaps(), DECIMALS) + 0.0)
