"""No protection: the gaps themselves."""

from dataclasses import dataclass

from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer, exactly
from compliance.mechanisms.promise import ByRecord, require_budget
from compliance.noise.sampling import Noise


@dataclass(frozen=True)
class Exact(ByRecord):
    """A mechanism of exact answers, at an infinite price. A known-bad subject for privacy tests."""

    name: str = "exact"
    title: str = "exact answers"
    guarantee: Guarantee = "none"

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps."""
        require_budget(epsilon, delta)
        return exactly(question.gaps())
