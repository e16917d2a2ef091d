r"""Sample and aggregate (Nissim, Raskhodnikova, Smith, STOC 2007): the mean of a gap over blocks of people, with noise.

People are dealt into k blocks at random, without reading their attributes. One flip touches one block, whose gap moves
by at most 1 (below), so that the mean over the blocks moves by at most 1/k, where the gap itself may move by 1/2 and
more. For m models all means move at once: m/k in the L1 norm, and Laplace noise of scale m/(k epsilon) on each is pure
epsilon (`fairwall.laws.mechanisms.calibration`). The deal is independent of A, and the bound holds for every deal: it
may be public.

**A block's gap moves by at most 1.** A gap of a block that lacks a group is 0, the middle of the range. By
`fairwall.laws.metrics.sensitivity` a gap of group means that may be empty moves by at most 1, so does the predictive
parity gap. Equalized odds are two gaps, of which one flip touches one: both means get noise of that scale, for 1/k
together.

**Absolute gaps** are taken last, from the noisy mean of the signed gaps: post-processing. The mean of the blocks'
absolute gaps would be far too large, since small blocks have large gaps of both signs.

**Bias.** The mean over blocks is not the gap: blocks without one of the groups pull it towards 0. With share s of the
minority, (1-s)^b of the blocks of b people lack it. Larger blocks have less of this bias and more noise. The bias is
secret, so no interval around an answer is known to hold the gap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer
from compliance.mechanisms.row_defaults import ByRecord, require_answerable
from compliance.noise.sampling import ROUNDING_STEPS, Noise, step_for
from compliance.records.metrics import MetricSums, gaps
from fairwall.arrays import Bytes, Floats, Ints
from fairwall.laws.mechanisms.calibration import BLOCK_SIZE, aggregate_law, block_count
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.noise.distributions import Laplace


@dataclass(frozen=True)
class SampleAndAggregate(ByRecord):
    """A mechanism that releases the mean gap over random blocks of people.

    `block_size`: approximate number of people of the metric's smallest stratum in a block, at least 2. Public.
    """

    block_size: int = BLOCK_SIZE
    name: str = "sample-and-aggregate"
    title: str = "sample and aggregate"
    guarantee: Guarantee = "pure"

    def __post_init__(self) -> None:
        if self.block_size < 2:
            raise ValueError("a block must have at least 2 people")

    def blocks(self, metric: str, labels: Bytes) -> int:
        """Return k, the number of blocks, which depends on public numbers alone; at least 1."""
        strata = [int(np.sum(labels == label)) for label in find_metric(metric).strata if label is not None]
        return block_count(min(strata, default=labels.size), self.block_size)

    def law(self, metric: str, labels: Bytes, queries: int, epsilon: float) -> Laplace:
        """Return the noise on each mean; public."""
        return aggregate_law(self.blocks(metric, labels), queries, epsilon)

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return the noisy means. See `Mechanism.release`."""
        require_answerable(self, question.metric, epsilon, delta)
        labels = question.records.labels
        dealt = deal(labels, self.blocks(question.metric, labels), noise)
        means = np.mean([block_gaps(question, people) for people in dealt], axis=0)
        if not math.isinf(epsilon):
            scale = self.law(question.metric, labels, question.queries, epsilon).scale
            step = step_for(scale)
            # The allowance for rounding, in each of the batch's numbers.
            scale += question.queries * ROUNDING_STEPS * step / epsilon
            means = noise.laplace(means.ravel(), scale, step).reshape(means.shape)
        return MechanismAnswer(_combined(question.metric, means))


def deal(labels: Bytes, blocks: int, noise: Noise) -> list[Ints]:
    """Return random blocks of people, with each label spread as evenly as possible."""
    order = noise.permutation(labels.size)
    order = order[np.argsort(labels[order], kind="stable")]
    return [order[first::blocks] for first in range(blocks)]


def block_gaps(question: BatchQuestion, people: Ints) -> Floats:
    """Return a block's signed gaps, shape (gaps in the metric, m); 0 where a group is empty. Secret."""
    parts = question.records.among(people).group_sums(question.metric, question.predictions[:, people])
    if find_metric(question.metric).binary:  # one gap out of two parts
        return _or_zero(question.metric, parts)[np.newaxis]
    return np.array([_or_zero("sp", (part,)) for part in parts])


def _or_zero(metric: str, parts: Sequence[MetricSums]) -> Floats:
    if all(part.n1 and part.n0 for part in parts):
        return gaps(metric, parts)
    return np.zeros(parts[0].sum1.shape)


def _combined(metric: str, means: Floats) -> Floats:
    """Return the metric of its signed gaps, by the metric's own formula with one person in each group."""
    if find_metric(metric).binary:
        only: Floats = means[0]
        return only
    return gaps(metric, [MetricSums(sum1=mean, sum0=np.zeros_like(mean), n1=1, n0=1) for mean in means])
