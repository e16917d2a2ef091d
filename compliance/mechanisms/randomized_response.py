r"""Randomized response on the protected attribute itself (Warner 1965), once for each account.

Every person's a is turned over with probability p = 1/(1 + e^epsilon), independently: pure epsilon, for all people and
all metrics at once. Everything afterwards is a function of the noisy attributes and of public numbers, and free.
`fairwall.laws.response` has the price and the estimates of sums over a group.

**Metrics** are ratios of such sums. They are consistent, with a bias of the order of the variance of the estimated
group size over its square. Sums and sizes that cannot be (a group of less than one person, more people than there
are, a sum above the group's size) are moved to the nearest that can, which brings them nearer to the truth and biases
them too. The standard deviation of a gap is about sqrt(n p(1-p))/(1-2p) times (1/n0 + 1/n1) times the spread of
predictions: it falls with sqrt(n) only, where noise on a batch's answers falls with n, but it does not grow with the
number of models.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.accountant import Loss, pure
from compliance.mechanisms.mechanism import Facts, Guarantee, Question, Release, require_budget
from compliance.metrics import GroupSums, gaps
from compliance.noise import Noise, step_for
from fairwall.laws.bounding import metric_range
from fairwall.laws.metric import part_values, sums_over
from fairwall.laws.response import response_estimates, turning_probability

ATTRIBUTES = "randomized-response.protected"
"""The fact: everybody's attribute as it came out, shape (n,)."""

EPSILON = "randomized-response.epsilon"
"""The fact: what the attributes were turned over with, shape (1,)."""


@dataclass(frozen=True)
class RandomizedResponse:
    """Turns attributes over once, and answers every batch of the account from what came out.

    An account's first batch buys the noisy attributes, at that batch's epsilon; `is_free` tells the later ones, which
    draw nothing and whose epsilon is of no effect. Answers are bounded to the metric's range.
    """

    name: str = "randomized-response"
    title: str = "randomised response"
    guarantee: Guarantee = "pure"

    def refuses(self, metric: str, epsilon: float, delta: float) -> str | None:  # noqa: ARG002
        """Return None: every metric is a function of the noisy attributes."""
        return None

    def cost(self, epsilon: float, delta: float) -> Loss:
        """Return epsilon, the price of an account's first batch."""
        require_budget(epsilon, delta)
        return pure(epsilon)

    def is_free(self, facts: Facts) -> bool:
        """Return whether the account has what all further answers are made from."""
        return ATTRIBUTES in facts

    def release(self, question: Question, facts: Facts, epsilon: float, delta: float, noise: Noise) -> Release:
        """Return estimates from the noisy attributes, which are the fact that the first batch buys."""
        require_budget(epsilon, delta)
        bought: Facts = {} if self.is_free(facts) else _buy(question, epsilon, noise)
        known = {**facts, **bought}
        sums = tuple(_estimates(question, known[ATTRIBUTES], turning_probability(float(known[EPSILON][0]))))
        values = np.clip(gaps(question.metric, sums), *metric_range(question.metric))
        # Nothing is hidden in the last bits, since nothing but released numbers went in; but a grid is promised.
        return Release(noise.laplace(values, 0.0, step_for(0.0)), bought)


def _buy(question: Question, epsilon: float, noise: Noise) -> Facts:
    records = question.records
    turned = records.turned(noise.bernoulli(turning_probability(epsilon), records.people))
    return {ATTRIBUTES: turned.astype(np.float64), EPSILON: np.array([epsilon])}


def _estimates(question: Question, noisy: NDArray[np.float64], probability: float) -> Iterator[GroupSums]:
    """Estimate the sums of each of the metric's parts; public, since the labels and predictions are."""
    for members, values in part_values(question.metric, question.predictions, question.records.labels):
        people, totals = int(np.count_nonzero(members)), sums_over(members, values)
        size, sums = sums_over(members, noisy[np.newaxis]), sums_over(members, values * noisy)
        (n1,), sum1 = response_estimates(size, sums, people, totals, probability)
        yield GroupSums(sum1=sum1, sum0=totals - sum1, n1=float(n1), n0=people - float(n1))
