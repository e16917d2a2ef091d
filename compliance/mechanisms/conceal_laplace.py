"""Laplace noise on the smooth sensitivity (Hamman, Chen, Dutta, FAccT 2023, Theorem 8)."""

from dataclasses import dataclass

from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.promise import ByRecord, require_answerable
from compliance.noise.sampling import ROUNDING_STEPS, Noise, step_for
from fairwall.laws.conceal_laplace import conceal_laplace_beta


@dataclass(frozen=True)
class ConcealLaplace(ByRecord):
    """A mechanism of Laplace noise of scale 2 m S / epsilon, epsilon below 1: `fairwall.laws.conceal_laplace`."""

    name: str = "conceal-laplace"
    title: str = "Attribute-Conceal (Laplace)"
    guarantee: Guarantee = "approximate"

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps with noise. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        beta = conceal_laplace_beta(question.queries, epsilon, delta)
        unit = 2 * question.queries / epsilon
        step = step_for(unit * question.smallest_change())
        # S plus a constant is as smooth as S, and covers a flip together with the rounding.
        scale = unit * (question.smooth(beta) + ROUNDING_STEPS * step)
        return MechanismAnswer(noise.laplace(question.gaps(), scale, step))
