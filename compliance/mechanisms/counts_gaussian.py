"""Gaussian noise on counts and sums: as `counts`, for (epsilon, delta), where m sums cost sqrt(m) rather than m."""

from dataclasses import dataclass

import numpy as np

from compliance.ledger.accountant import Loss
from compliance.mechanisms.counts import CountPurchase, NoisyCounts, answer
from compliance.mechanisms.gaussian import gaussian_cost
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.promise import Noisy, require_budget
from compliance.noise.sampling import GAUSSIAN_FINENESS, ROUNDING_STEPS, Noise, step_for
from fairwall.laws.counts import CountScales, gaussian_scales
from fairwall.laws.gaussian import gaussian_multiplier, gridded_multiplier
from fairwall.laws.noise import Gaussian


@dataclass(frozen=True)
class CountsGaussian(Noisy):
    """A mechanism of Gaussian noise on N0 and the centred sums. See `compliance.mechanisms.counts.CountsMechanism`."""

    shrinks: bool = False
    name: str = "counts-gaussian"
    title: str = "noisy counts (Gaussian)"
    guarantee: Guarantee = "approximate"

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return (epsilon, delta), and the multiplier for rules that use it."""
        require_budget(epsilon, delta)
        return gaussian_cost(epsilon, delta)

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return possible values of the metric, and N0 as a fact. See `Noisy.noisy`."""

        def buy(purchase: CountPurchase) -> NoisyCounts:
            k, known = purchase.sums.size, purchase.known
            about = gaussian_scales(k, gaussian_multiplier(epsilon, delta), size_known=known)
            steps = [step_for(scale, GAUSSIAN_FINENESS, purchase.n) for scale in (about.size, about.sums)]
            # N0 is whole: on a grid of at most 1 it is not rounded, which its scale has no allowance for.
            steps[0] = min(steps[0], 1.0)
            multiplier = gridded_multiplier(epsilon, delta, k + 1, _fewest_steps(about, steps))
            scales = gaussian_scales(k, multiplier, size_known=known, steps=ROUNDING_STEPS * steps[1])
            size = None if known else float(noise.gaussian(np.array([float(purchase.n0)]), scales.size, steps[0])[0])
            sums = noise.gaussian(purchase.sums - purchase.n0 / 2, scales.sums, steps[1])
            return NoisyCounts(size, Gaussian(scales.size), sums, Gaussian(scales.sums), steps[1])

        return answer(question, facts, buy, shrinks=self.shrinks, gaussian=True)


def _fewest_steps(scales: CountScales, steps: list[float]) -> float:
    return min(scale / step for scale, step in zip((scales.size, scales.sums), steps, strict=True) if scale)
