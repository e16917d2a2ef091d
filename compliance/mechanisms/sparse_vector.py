"""The sparse vector technique: which of many models have a gap above a threshold (Lyu, Su, Li, VLDB 2017)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.mechanisms.exponential import without_sign
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.promise import ByRecord, require_answerable
from compliance.noise.sampling import ROUNDING_STEPS, Noise, step_for
from fairwall.laws.selection import SparseVectorNoise, sparse_vector


@dataclass(frozen=True)
class SparseVectorMechanism(ByRecord):
    """A mechanism of verdicts: 1 where an absolute gap is above a threshold, 0 if not, NaN after the last allowed 1.

    A 0 costs nothing, so that the number of models does not matter; `fairwall.laws.selection` has the derivation. The
    stop depends on the earlier answers alone. A batch is one run: the next one pays again and draws a new threshold.

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


def _stopped(above: NDArray[np.bool_], positives: int | None) -> NDArray[np.float64]:
    values = above.astype(np.float64)
    if positives is not None:
        values[np.cumsum(above) - above >= positives] = np.nan
    return values
