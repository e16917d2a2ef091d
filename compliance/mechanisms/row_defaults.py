"""Base classes of mechanisms: refusals and prices by the mechanism's row, and exact answers at an infinite epsilon."""

from __future__ import annotations

import math

from compliance.ledger.accountant import Loss, pure
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, Mechanism, MechanismAnswer, exactly
from compliance.noise.sampling import Noise
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.metrics.metric import find_metric


def require_budget(epsilon: float, delta: float) -> None:
    """Raise ValueError unless epsilon is above 0 and delta in [0, 1); an infinite epsilon is allowed, NaN is not."""
    if not epsilon > 0:
        raise ValueError("epsilon must be above 0")
    if not 0 <= delta < 1:
        raise ValueError("delta must be at least 0 and below 1")


class ByRecord:
    """Refusals and prices that follow from a mechanism's guarantee and its row in `MECHANISM_LAWS`.

    A price is the promise, (epsilon, delta), for a whole batch of however many models: never the smaller loss that the
    counts may have, which are secret.
    """

    name: str
    title: str
    guarantee: Guarantee

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:
        """Return why such a batch is not answered. See `Mechanism.refuses`."""
        law = MECHANISM_LAWS[self.name]
        if self.guarantee == "none":
            return None
        if epsilon >= law.epsilon_below < math.inf:
            return f"mechanism {self.name} is proved for an epsilon below {law.epsilon_below:,g} only"
        reason = refuse_unbounded(metric) if law.noise_on in ("gaps", "blocks", "choices") else None
        return reason or (refuse_without_delta(self.name, delta) if law.needs_delta else None)

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return the guarantee's promise; infinity for no guarantee. See `Mechanism.cost`."""
        require_budget(epsilon, delta)
        if self.guarantee == "none":
            return pure(math.inf)
        return pure(epsilon, delta if self.guarantee == "approximate" else 0.0)


class Noisy(ByRecord):
    """The base of mechanisms that add noise for a finite epsilon, and none for an infinite one."""

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the answers to one batch. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        if math.isinf(epsilon):
            return exactly(question.gaps())
        return self.noisy(question, facts, epsilon, delta, noise)

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return answers with noise, for a finite epsilon at which nothing is refused."""
        raise NotImplementedError


def refuse_unbounded(metric: str) -> str | None:
    """Return why noise on a metric itself cannot protect it, None where it can."""
    if find_metric(metric).bounded:
        return None
    return f"one person can move metric {metric} without limit: only counts can protect it"


def refuse_without_delta(name: str, delta: float) -> str | None:
    """Return why a mechanism that needs a delta does not answer, None where there is one."""
    return None if delta > 0 else f"mechanism {name} needs a delta above 0"


def require_answerable(mechanism: Mechanism, metric: str, epsilon: float, delta: float) -> None:
    """Raise ValueError with the mechanism's refusal, if it refuses."""
    require_budget(epsilon, delta)
    reason = mechanism.refuses(metric, epsilon, delta)
    if reason is not None:
        raise ValueError(reason)
