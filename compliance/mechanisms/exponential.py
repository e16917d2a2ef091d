"""The choice of the fairest model, by permute and flip (McKenna, Sheldon, NeurIPS 2020).

Compared with the exponential mechanism (McSherry, Talwar, FOCS 2007) it has the same privacy from the same
exponentials, is never a worse choice, and is drawn exactly, without a sum of exponentials.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.promise import ByRecord, require_answerable
from compliance.noise.sampling import ROUNDING_STEPS, Noise, step_for
from fairwall.laws.selection import permute_and_flip_exponents, unsigned


@dataclass(frozen=True)
class ExponentialMechanism(ByRecord):
    """A mechanism that chooses the model with the smallest absolute gap: 1 for it, 0 for all others.

    The batch buys one choice among its models and no information about the size of any gap, so the price does not grow
    with their number: a model's score, minus its absolute gap, moves by at most the global sensitivity.
    """

    name: str = "exponential"
    title: str = "exponential mechanism"
    guarantee: Guarantee = "pure"

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return 1 for the chosen model and 0 for the others. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        # On the finest grid: float64's own rounding errors must not tell models apart whose gaps are equal.
        step = step_for(0.0)
        asked = without_sign(question)
        scores = -noise.laplace(np.abs(asked.gaps()), 0.0, step)
        sensitivity = asked.sensitivities().overall
        exponents = permute_and_flip_exponents(scores, sensitivity + ROUNDING_STEPS * step, epsilon)
        # Everybody flips, also those who come after the first to accept: the number of flips would tell something.
        accepts = _accepts(exponents, noise)
        order = noise.permutation(scores.size)
        values = np.zeros(scores.size)
        values[order[np.argmax(accepts[order])]] = 1.0
        return MechanismAnswer(values)


def _accepts(exponents: NDArray[np.float64], noise: Noise) -> NDArray[np.bool_]:
    possible = np.isfinite(exponents)
    return possible & noise.bernoulli_exp(np.where(possible, exponents, 0.0))


def without_sign(question: BatchQuestion) -> BatchQuestion:
    """Return the question for the absolute gap, see `fairwall.laws.selection.unsigned`."""
    return replace(question, metric=unsigned(question.metric))
