r"""Randomized response on the protected attribute itself (Warner 1965): noisy copies of it, sold to an account.

Every person's a is flipped with probability p = 1/(1 + e^epsilon), independently: pure epsilon, for all people and all
metrics at once. Everything afterwards is a function of the noisy attributes and of public numbers, and free. A request
at a larger epsilon than any before buys one more copy, drawn independently, and epsilons add up: the worst outcome of
each copy is the worst of all together. Estimates combine the copies by each person's likelihood.
`fairwall.laws.noise.randomized_response` has the price and the estimates of sums over a group.

**Metrics** are ratios of such sums. They are consistent, with a bias of the order of the variance of the estimated
group size over its square. Impossible sums and sizes (a group of less than one person, more people than there are, a
sum above the group's size) are moved to the nearest possible one, which brings them nearer to the truth and biases them
too. The standard deviation of a gap is about sqrt(n p(1-p))/(1-2p) times (1/n0 + 1/n1) times the spread of predictions:
it falls with sqrt(n) only, where noise on a batch's answers falls with n, but it does not grow with the number of
models.

Intervals are `compliance.intervals.response`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from compliance.intervals.response import intervals
from compliance.mechanisms.mechanism import BatchQuestion, Facts, Guarantee, MechanismAnswer, around, within_ends
from compliance.mechanisms.row_defaults import ByRecord, require_budget
from compliance.noise.sampling import Noise, step_for
from compliance.records.metrics import MetricSums, gaps
from fairwall.arrays import Floats
from fairwall.laws.metrics.metric import find_metric
from fairwall.laws.metrics.values import AT_ONCE, part_values, sums_over
from fairwall.laws.noise.randomized_response import combined as combined_copies
from fairwall.laws.noise.randomized_response import response_estimates, turning_probability

ATTRIBUTES = "randomized-response.protected"
"""Name of the fact that holds everybody's attribute in each copy, shape (copies, n); (n,) in old ledgers."""

EPSILON = "randomized-response.epsilon"
"""Name of the fact that holds each copy's epsilon, shape (copies,)."""


@dataclass(frozen=True)
class RandomizedResponse(ByRecord):
    """A mechanism that flips attributes at random, and answers every batch of the account from the result.

    An account's first batch buys noisy attributes, at that batch's epsilon, and so does each one at a larger epsilon;
    other batches are free (`is_free`) and draw nothing. Answers are bounded to the metric's range.
    """

    name: str = "randomized-response"
    title: str = "randomised response"
    guarantee: Guarantee = "pure"

    def is_free(self, facts: Facts, epsilon: float, question: BatchQuestion | None = None) -> bool:
        """Return whether the account has a copy at this epsilon or a larger one."""
        return EPSILON in facts and bool(np.max(facts[EPSILON]) >= epsilon)

    def release(
        self, question: BatchQuestion, facts: Facts, epsilon: float, delta: float, noise: Noise
    ) -> MechanismAnswer:
        """Return estimates from the noisy attributes, which are the facts that are bought."""
        require_budget(epsilon, delta)
        bought = {} if self.is_free(facts, epsilon) else _buy(question, facts, epsilon, noise)
        known = {**facts, **bought}
        copies = np.atleast_2d(known[ATTRIBUTES]).astype(np.float64)
        probabilities = [turning_probability(one) for one in known[EPSILON].tolist()]
        noisy, probability = combined_copies(copies, probabilities)
        metric, fewest, found = find_metric(question.metric), question.records.minimum_group, list[list[Any]]()
        step = max(1, AT_ONCE // question.records.people)
        for first in range(0, question.queries, step):  # some models at a time: what is made of them is large
            some = replace(question, predictions=question.predictions[first : first + step])
            values = gaps(some.metric, tuple(_estimates(some, noisy, probability)))
            parts = list(part_values(some.metric, some.predictions, some.records.labels))
            guaranteed, likely = intervals(metric, parts, noisy, probabilities, fewest)
            found.append([within_ends(values, guaranteed, likely), *guaranteed, *likely])
        values, low, high, *ends = (np.concatenate(of) for of in zip(*found, strict=True))
        # Nothing is hidden in the last bits, since nothing but released numbers went in; but a grid is promised.
        values = noise.laplace(values, 0.0, step_for(0.0))
        return MechanismAnswer(values, bought, *around(values, (low, high)), around(values, (ends[0], ends[1])))


def _buy(question: BatchQuestion, facts: Facts, epsilon: float, noise: Noise) -> dict[str, Floats]:
    """Draw one more noisy copy, after the copies bought before: a fact replaces the earlier one of its name."""
    records = question.records
    turned = records.turned(noise.bernoulli(turning_probability(epsilon), records.people))
    before = np.atleast_2d(facts[ATTRIBUTES]) if ATTRIBUTES in facts else np.empty((0, records.people))
    return {
        ATTRIBUTES: np.vstack((before, turned)).astype(np.uint8),
        EPSILON: np.append(facts.get(EPSILON, np.empty(0)), epsilon),
    }


def _estimates(question: BatchQuestion, noisy: Floats, probability: float) -> Iterator[MetricSums]:
    """Yield the estimated sums of each of the metric's parts; public, since the labels and predictions are."""
    for members, values in part_values(question.metric, question.predictions, question.records.labels):
        people, totals = int(np.count_nonzero(members)), sums_over(members, values)
        size, sums = sums_over(members, noisy[np.newaxis]), sums_over(members, values * noisy)
        (n1,), sum1 = response_estimates(size, sums, people, totals, probability)
        yield MetricSums(sum1=sum1, sum0=totals - sum1, n1=float(n1), n0=people - float(n1))
