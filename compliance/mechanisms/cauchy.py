"""Cauchy noise on the smooth sensitivity that spends the whole of epsilon."""

import math
from dataclasses import dataclass, replace

from compliance.ledger.accountant import Loss, pure
from compliance.mechanisms.mechanism import (
    Facts,
    Guarantee,
    Question,
    Release,
    exactly,
    refuse_unbounded,
    require_answerable,
    require_budget,
)
from compliance.noise.sampling import Noise, step_for
from fairwall.laws.cauchy import tune
from fairwall.laws.shares import DEFAULT_SHARES, Shares

_ALLOWANCE = 1 + 2.0**-30
"""For float64's rounding errors in the gaps and the scale, which are below 2^-40 of a flip."""


@dataclass(frozen=True)
class CauchyMechanism:
    """Adds independent Cauchy noise, calibrated to its exact loss: `fairwall.laws.cauchy`.

    Parameters
    ----------
    shares : Shares
        The public range of group shares for which the noise is to be small.
    """

    shares: Shares = DEFAULT_SHARES
    name: str = "cauchy"
    title: str = "tuned Cauchy"
    guarantee: Guarantee = "pure"

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:  # noqa: ARG002
        """Refuse what one person can move without limit."""
        return refuse_unbounded(metric)

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return epsilon, which is the true worst case over all counts."""
        require_budget(epsilon, delta)
        return pure(epsilon)

    def release(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:  # noqa: ARG002
        """Return the gaps with noise. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        gaps = question.gaps()
        if math.isinf(epsilon):
            return exactly(gaps)
        # What the records hold, and nothing assumed: noise counts on it.
        shares = replace(self.shares, minimum_group=question.records.minimum_group)
        tuning = tune(question.metric, question.people(), question.queries, epsilon, shares)
        scale = _ALLOWANCE * question.smooth(tuning.beta) / tuning.alpha
        return Release(noise.cauchy(gaps, scale, step_for(question.smallest_change() / tuning.alpha)))
