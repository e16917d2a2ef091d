"""No protection: whether each gap passes, which some audits take for a private answer because it is one bit."""

import math
from dataclasses import dataclass

import numpy as np

from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.promise import ByRecord, require_budget
from compliance.noise.sampling import Noise


@dataclass(frozen=True)
class PassFail(ByRecord):
    """A mechanism of exact verdicts, at an infinite price: 1 where a model's gap is above a limit, 0 where it passes.

    A signed gap fails on either side, as audits against disparity in any direction do: its absolute value counts. So no
    verdict tells which group is favoured, whatever the metric. Equality passes. The ratio of disparate impact is
    compared with the limit as it is, an infinite one fails, and an undefined one passes.

    A bit is exact all the same: a row whose gap lies at the limit flips with one person, and
    `developer.reveal.strategies.verdicts` recovers everybody from little more bits than the attributes have. A
    known-bad subject for privacy tests.

    `threshold`: the policy's limit of the absolute value, at least 0. Public.
    """

    threshold: float = 0.1
    name: str = "pass-fail"
    title: str = "pass or fail"
    guarantee: Guarantee = "none"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.threshold) and self.threshold >= 0):
            raise ValueError("the threshold must be a finite number of at least 0")

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return 1 for each model that fails and 0 for each that passes."""
        require_budget(epsilon, delta)
        return MechanismAnswer((np.abs(question.gaps()) > self.threshold).astype(np.float64))
