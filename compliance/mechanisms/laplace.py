"""The Laplace mechanism on the global sensitivity (Dwork, McSherry, Nissim, Smith 2006)."""

from dataclasses import dataclass

from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer, with_interval
from compliance.mechanisms.promise import Noisy
from compliance.noise.sampling import ROUNDING_STEPS, Noise, step_for
from fairwall.laws.noise import Laplace


@dataclass(frozen=True)
class LaplaceMechanism(Noisy):
    """A mechanism of independent Laplace noise of the public scale m * global sensitivity / epsilon.

    See `fairwall.laws.calibration.laplace_law`. The sensitivity is enlarged by the largest effect of rounding to the
    grid.
    """

    name: str = "laplace"
    title: str = "Laplace"
    guarantee: Guarantee = "pure"

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the gaps with noise. See `Noisy.noisy`."""
        gaps = question.gaps()
        change = question.sensitivities().overall
        step = step_for(question.queries * change / epsilon)
        law = Laplace(question.queries * (change + ROUNDING_STEPS * step) / epsilon)
        return with_interval(noise.laplace(gaps, law.scale, step), law, step)
