"""Attribute-Conceal: Cauchy noise on the smooth sensitivity (Hamman, Chen, Dutta, FAccT 2023, Algorithm 3)."""

from dataclasses import dataclass

from compliance.ledger.accountant import Loss, pure
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.promise import Noisy, require_budget
from compliance.noise.sampling import Noise, step_for


@dataclass(frozen=True)
class Conceal(Noisy):
    """A mechanism of independent Cauchy noise of scale 6 m S / epsilon: the paper's, with S corrected.

    See `fairwall.laws.calibration.conceal_law`. The scale depends on the secret counts and must never leave compliance;
    the grid does not.
    """

    name: str = "conceal"
    title: str = "Attribute-Conceal"
    guarantee: Guarantee = "pure"

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return epsilon: the promise, not the smaller loss that `fairwall.laws.calibration.conceal_loss` computes.

        That loss depends on the secret counts, so it is no price.
        """
        require_budget(epsilon, delta)
        return pure(epsilon)

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps with noise. See `Noisy.noisy`."""
        gaps = question.gaps()
        beta = epsilon / (6 * question.queries)
        return MechanismAnswer(
            noise.cauchy(gaps, question.smooth(beta) / beta, step_for(question.smallest_change() / beta))
        )
