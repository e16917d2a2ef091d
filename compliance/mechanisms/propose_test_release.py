r"""Propose, test, release (Dwork, Lei, STOC 2009): noise for large groups, released only if a test finds them large.

**Propose.** The policy guesses a least share of the minority. In a stratum of n people it stands for b = max(2,
ceil(share n)) people, and for the bound B = flip_sensitivity(n, b): while both groups have at least b people, one flip
moves the metric by at most B, since that bound falls up to the middle. For b = 2 it holds always; and where groups are
known to have at least g people, b is g + 1 at least, for which it always holds.

**Test.** With a = min(n0, n1), D = max(0, a - b + 1) flips lead to a data set where B does not hold; for two strata the
smaller D counts, of which one flip touches one. D moves by at most 1. It gets discrete Laplace noise, P(k) =
(1-q)/(1+q) q^|k|, q = exp(-epsilon1), and passes if it reaches t, the least t >= 1 with P(noise >= t) = q^t/(1+q) <=
delta.

**Release.** If the test passes, answers have Laplace noise of scale m B/epsilon2; if it fails, they are NaN for all
models. epsilon1 + epsilon2 = epsilon, and

* if B holds for one of two neighbours, the metric moves by at most B between them: the test's loss and the release's
  add up to epsilon, with no delta;
* otherwise D = 0 for both: they pass with the same probability, at most delta, and fail with the same probability.
  Whatever is released when passing has probability at most delta. No epsilon, delta.

So it is (epsilon, delta) and not their sum over the two cases. **Failing is an outcome like any other**: it reveals
something about the group's size, is covered by this proof, and is charged in full.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer, with_interval
from compliance.mechanisms.row_defaults import Noisy, refuse_unbounded, refuse_without_delta
from compliance.noise.sampling import ROUNDING_STEPS, Noise, step_for
from fairwall.arrays import Bytes
from fairwall.laws.mechanisms.calibration import MINORITY_SHARE, TEST_SHARE, proposed_bound, proposed_size, released_law
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.distributions import Laplace


@dataclass(frozen=True)
class ProposeTestRelease(Noisy):
    """A mechanism of little noise where a test finds both groups large, and of no answer, NaN, where it does not.

    `minority_share`: least share of a stratum's smaller group for which the noise is made, in (0, 1/2]. Public: a
    guess, from the census for instance, and never from the records. `test_share`: the part of epsilon that the test
    spends, in (0, 1).
    """

    minority_share: float = MINORITY_SHARE
    test_share: float = TEST_SHARE
    name: str = "propose-test-release"
    title: str = "propose-test-release"
    guarantee: Guarantee = "approximate"

    def __post_init__(self) -> None:
        if not 0 < self.minority_share <= 0.5:
            raise ValueError("minority_share must be above 0 and at most 1/2")
        if not 0 < self.test_share < 1:
            raise ValueError("test_share must be above 0 and below 1")

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:
        """Return why, for a metric that does not move less in large groups, or without a delta."""
        if find_metric(metric).binary:
            return f"metric {metric} moves as much in large groups as in small ones: nothing can be proposed"
        return refuse_unbounded(metric) or (None if math.isinf(epsilon) else refuse_without_delta(self.name, delta))

    def law(self, metric: str, labels: Bytes, queries: int, epsilon: float, minimum_group: int = 1) -> Laplace:
        """Return the noise on each answer that passes; public."""
        strata = _strata(metric, labels).values()
        bound = max(proposed_bound(metric, people, self.minority_share, minimum_group) for people in strata)
        return released_law(bound, queries, epsilon, self.test_share)

    def proposed_size(self, people: int, minimum_group: int = 1) -> int:
        """Return b for a stratum of this many people, at least 2g+1."""
        return proposed_size(people, self.minority_share, minimum_group)

    def distance(self, minority: int, people: int, minimum_group: int = 1) -> float:
        """Return D for a stratum; infinite where the bound always holds. Secret."""
        size = self.proposed_size(people, minimum_group)
        return math.inf if size == minimum_group + 1 else max(0, minority - size + 1)

    def passing_distance(self, epsilon: float, delta: float) -> int:
        """Return t, the noisy distance at which the test passes."""
        rate = epsilon * self.test_share
        least = max(1, math.ceil(-(math.log(delta) + math.log1p(math.exp(-rate))) / rate))
        # The quotient may have been rounded down.
        return least if -rate * least - math.log1p(math.exp(-rate)) <= math.log(delta) else least + 1

    def noisy(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the noisy metric, or NaN for every model. See `Noisy.noisy`."""
        gaps, labels = question.gaps(), question.records.labels
        law = self.law(question.metric, labels, question.queries, epsilon, question.records.minimum_group)
        step = step_for(law.scale)
        rounding = question.queries * ROUNDING_STEPS * step / (epsilon * (1 - self.test_share))
        law = Laplace(law.scale + rounding)
        # Drawn whether the test passes or not: else the time would tell.
        values = noise.laplace(gaps, law.scale, step)
        passed = self._passes(question, epsilon, delta, noise)
        return with_interval(values if passed else np.full(values.shape, np.nan), law, step)

    def _passes(self, question: BatchQuestion, epsilon: float, delta: float, noise: Noise) -> bool:
        counts = question.counts()
        distance = min(
            self.distance(min(counts.groups(label)), people, question.records.minimum_group)
            for label, people in _strata(question.metric, question.records.labels).items()
        )
        if math.isinf(distance):  # public: no stratum can fail
            return True
        # Distances are whole numbers, so that a grid of whole numbers rounds nothing.
        noisy = noise.laplace(np.array([distance]), 1 / (epsilon * self.test_share), 1.0)
        return bool(noisy[0] >= self.passing_distance(epsilon, delta))


def _strata(metric: str, labels: Bytes) -> dict[int | None, int]:
    """Return the number of people of each stratum, by label; public."""
    return {
        label: labels.size if label is None else int(np.count_nonzero(labels == label))
        for label in find_metric(metric).strata
    }
