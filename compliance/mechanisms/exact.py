"""No protection: the gaps themselves."""

import math
from dataclasses import dataclass

from compliance.ledger.accountant import Loss, pure
from compliance.mechanisms.mechanism import Facts, Guarantee, Question, Release, exactly, require_budget
from compliance.noise.sampling import Noise


@dataclass(frozen=True)
class Exact:
    """Answers exactly, at an infinite price. A known-bad subject for privacy tests."""

    name: str = "exact"
    title: str = "exact answers"
    guarantee: Guarantee = "none"

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:  # noqa: ARG002
        """Refuse nothing."""
        return None

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return infinity, whatever was asked for."""
        require_budget(epsilon, delta)
        return pure(math.inf)

    def release(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:  # noqa: ARG002
        """Return the gaps."""
        require_budget(epsilon, delta)
        return exactly(question.gaps())
