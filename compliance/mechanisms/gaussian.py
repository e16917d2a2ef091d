"""The Gaussian mechanism on the global sensitivity, calibrated exactly (Balle and Wang, ICML 2018)."""

import math
from dataclasses import dataclass

from compliance.ledger.accountant import Loss, LossKind, pure
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer, with_interval
from compliance.mechanisms.promise import Noisy, require_budget
from compliance.noise.sampling import GAUSSIAN_FINENESS, ROUNDING_STEPS, Noise, step_for
from fairwall.laws.gaussian import gaussian_multiplier, gridded_multiplier
from fairwall.laws.noise import Gaussian


@dataclass(frozen=True)
class GaussianMechanism(Noisy):
    """A mechanism of independent Gaussian noise on m gaps, whose l2 sensitivity is sqrt(m) times one gap's.

    See `fairwall.laws.gaussian`, also for the cost of the grid.
    """

    name: str = "gaussian"
    title: str = "Gaussian"
    guarantee: Guarantee = "approximate"

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return (epsilon, delta), and the multiplier for rules that use it."""
        require_budget(epsilon, delta)
        return gaussian_cost(epsilon, delta)

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps with noise. See `Noisy.noisy`."""
        gaps = question.gaps()
        change, root = question.sensitivities().overall, math.sqrt(question.queries)
        about = gaussian_multiplier(epsilon, delta) * root * change
        step = step_for(about, GAUSSIAN_FINENESS)
        multiplier = gridded_multiplier(epsilon, delta, question.queries, about / step)
        law = Gaussian(multiplier * root * (change + ROUNDING_STEPS * step))
        return with_interval(noise.gaussian(gaps, law.scale, step), law, step)


def gaussian_cost(epsilon: float, delta: float) -> Loss:
    """Return the loss of the least (epsilon, delta)-private Gaussian noise: epsilon, delta, and its multiplier."""
    if math.isinf(epsilon) or delta == 0:
        return pure(math.inf)
    return Loss(epsilon, delta, LossKind.GAUSSIAN, gaussian_multiplier(epsilon, delta))
