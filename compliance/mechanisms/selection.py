"""Mechanisms that answer with a choice or a verdict: the fairest model, models above a threshold, pass or fail.

The fairest model is chosen by permute and flip (McKenna, Sheldon, NeurIPS 2020). Compared with the exponential
mechanism (McSherry, Talwar, FOCS 2007) it has the same privacy from the same exponentials, is never a worse choice, and
is drawn exactly, without a sum of exponentials. Models above a threshold are found by the sparse vector technique (Lyu,
Su, Li, VLDB 2017). Whether each gap passes, exactly, is no protection: some audits take it for a private answer because
it is one bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.row_defaults import ByRecord, require_answerable, require_budget
from compliance.noise.sampling import ROUNDING_STEPS, Noise, step_for
from fairwall.arrays import Bools, Floats
from fairwall.laws.mechanisms.selection import SparseVectorNoise, permute_and_flip_exponents, sparse_vector, unsigned


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


def _accepts(exponents: Floats, noise: Noise) -> Bools:
    possible = np.isfinite(exponents)
    return possible & noise.bernoulli_exp(np.where(possible, exponents, 0.0))


def without_sign(question: BatchQuestion) -> BatchQuestion:
    """Return the question for the absolute gap, see `fairwall.laws.mechanisms.selection.unsigned`."""
    return replace(question, metric=unsigned(question.metric))


@dataclass(frozen=True)
class SparseVectorMechanism(ByRecord):
    """A mechanism of verdicts: 1 where an absolute gap is above a threshold, 0 if not, NaN after the last allowed 1.

    A 0 costs nothing, so that the number of models does not matter; `fairwall.laws.mechanisms.selection` has the
    derivation. The stop depends on the earlier answers alone. A batch is one run: the next one pays again and draws a
    new threshold.

    `threshold`: the policy's limit of the absolute gap. Public. `positives`: most models that a batch can find above
    it, at least 1. Public.
    """

    threshold: float = 0.1
    positives: int = 3
    name: str = "sparse-vector"
    title: str = "sparse vector"
    guarantee: Guarantee = "pure"

    def __post_init__(self) -> None:
        if not math.isfinite(self.threshold):
            raise ValueError("the threshold must be a finite number")
        if self.positives < 1:
            raise ValueError("positives must be at least 1")

    def law(self, sensitivity: float, epsilon: float) -> SparseVectorNoise:
        """Return the noise of threshold and gaps, where a gap moves by at most the sensitivity."""
        return sparse_vector(self.threshold, sensitivity, self.positives, epsilon)

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return 1, 0 or NaN for each model. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        asked = without_sign(question)
        gaps = np.abs(asked.gaps())
        if math.isinf(epsilon):
            return MechanismAnswer(_stopped(gaps >= self.threshold, self.positives))
        sensitivity = asked.sensitivities().overall
        # Threshold and gaps share one grid, on which the proof's shifts by whole steps are possible.
        step = step_for(_least_scale(self.law(sensitivity, epsilon)))
        law = self.law(sensitivity + ROUNDING_STEPS * step, epsilon)
        threshold = noise.laplace(np.array([law.threshold]), law.threshold_scale, step)
        above = noise.laplace(gaps, law.query_scale, step) >= threshold
        return MechanismAnswer(_stopped(above, law.positives))


def _least_scale(law: SparseVectorNoise) -> float:
    return min((scale for scale in (law.threshold_scale, law.query_scale) if scale), default=0.0)


def _stopped(above: Bools, positives: int | None) -> Floats:
    values = above.astype(np.float64)
    if positives is not None:
        values[np.cumsum(above) - above >= positives] = np.nan
    return values


@dataclass(frozen=True)
class PassFail(ByRecord):
    """A mechanism of exact verdicts, at an infinite price: 1 where a model's gap is above a limit, 0 where it passes.

    A signed gap fails on either side, as audits against disparity in any direction do: its absolute value counts. So no
    verdict tells which group is favoured, whatever the metric. Equality passes. The ratio of disparate impact is
    compared with the limit as it is, an infinite one fails, and an undefined one passes.

    A bit is exact all the same: a row whose gap lies at the limit flips with one person, and
    `developer.reveal.strategies.verdicts` recovers everybody from little more bits than the attributes have. A
    known-bad subject for privacy tests.

    `threshold`: the policy's limit of the absolute value, at least 0. Public.
    """

    threshold: float = 0.1
    name: str = "pass-fail"
    title: str = "pass or fail"
    guarantee: Guarantee = "none"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.threshold) and self.threshold >= 0):
            raise ValueError("the threshold must be a finite number of at least 0")

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return 1 for each model that fails and 0 for each that passes."""
        require_budget(epsilon, delta)
        return MechanismAnswer((np.abs(question.gaps()) > self.threshold).astype(np.float64))
