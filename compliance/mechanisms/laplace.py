"""The Laplace mechanism on the global sensitivity (Dwork, McSherry, Nissim, Smith 2006)."""

import math
from dataclasses import dataclass

from compliance.mechanisms.mechanism import (
    ByRecord,
    Facts,
    Guarantee,
    Question,
    Release,
    exactly,
    require_answerable,
    with_interval,
)
from compliance.noise.sampling import ROUNDING_STEPS, Noise, step_for
from fairwall.laws.noise import Laplace


@dataclass(frozen=True)
class LaplaceMechanism(ByRecord):
    """Adds independent Laplace noise of the public scale m * global sensitivity / epsilon.

    See `fairwall.laws.calibration.laplace_law`. The sensitivity is enlarged by what rounding to the grid may add.
    """

    name: str = "laplace"
    title: str = "Laplace"
    guarantee: Guarantee = "pure"

    def release(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:  # noqa: ARG002
        """Return the gaps with noise. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        gaps = question.gaps()
        if math.isinf(epsilon):
            return exactly(gaps)
        change = question.sensitivities().overall
        step = step_for(question.queries * change / epsilon)
        law = Laplace(question.queries * (change + ROUNDING_STEPS * step) / epsilon)
        return with_interval(noise.laplace(gaps, law.scale, step), law, step)
