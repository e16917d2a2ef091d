"""Cauchy noise on the smooth sensitivity, calibrated to spend exactly epsilon."""

from dataclasses import dataclass, replace

from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.promise import Noisy
from compliance.noise.sampling import Noise, step_for
from fairwall.laws.cauchy import tune
from fairwall.laws.shares import DEFAULT_SHARES, Shares

_ALLOWANCE = 1 + 2.0**-30
"""Factor on the scale for float64's rounding errors in gaps and scale, which are below 2^-40 of a flip."""


@dataclass(frozen=True)
class CauchyMechanism(Noisy):
    """A mechanism of independent Cauchy noise, calibrated to its exact loss: `fairwall.laws.cauchy`.

    `shares`: public range of group shares for which the noise is tuned.
    """

    shares: Shares = DEFAULT_SHARES
    name: str = "cauchy"
    title: str = "tuned Cauchy"
    guarantee: Guarantee = "pure"

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps with noise. See `Noisy.noisy`."""
        gaps = question.gaps()
        # What the records hold, and nothing assumed: noise counts on it.
        shares = replace(self.shares, minimum_group=question.records.minimum_group)
        tuning = tune(question.metric, question.people(), question.queries, epsilon, shares)
        scale = _ALLOWANCE * question.smooth(tuning.beta) / tuning.alpha
        return MechanismAnswer(noise.cauchy(gaps, scale, step_for(question.smallest_change() / tuning.alpha)))
