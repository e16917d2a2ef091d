r"""Randomized response on the protected attribute itself (Warner 1965), once for each account.

Every person's a is turned over with probability p = 1/(1 + e^epsilon), independently. A neighbour's release has, for
the one person who differs, probabilities (1-p)/p = e^epsilon apart at most: pure epsilon, for all people and all
metrics at once. Everything afterwards is a function of the noisy attributes and of public numbers, and free.

**Sums.** With r = (noisy a - p)/(1-2p), E r = a. So for public values v, sum v r estimates the sum of v over the
advantaged without bias, with variance sum v^2 p(1-p)/(1-2p)^2 = sum v^2 e^epsilon/(e^epsilon - 1)^2; with v = 1 their
number. The disadvantaged have the rest of the known total.

**Metrics** are ratios of such sums. They are consistent, with a bias of the order of the variance of the estimated
group size over its square. Sums and sizes that cannot be (a group of less than one person, more people than there
are, a sum above the group's size) are moved to the nearest that can, which brings them nearer to the truth and biases
them too. The standard deviation of a gap is about sqrt(n p(1-p))/(1-2p) times (1/n0 + 1/n1) times the spread of
predictions: it falls with sqrt(n) only, where noise on a batch's answers falls with n, but it does not grow with the
number of models.
"""

from __future__ import annotations

import math
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


def turning_probability(epsilon: float) -> float:
    """Return p, rounded up: (1-p)/p is at most exp(epsilon) in spite of float64. At most 1/2; 0 for no limit."""
    if math.isinf(epsilon):
        return 0.0
    shrunk = math.exp(-epsilon)
    return min(0.5, max(shrunk / (1 + shrunk) * (1 + 2.0**-50), math.ulp(0.0)))


def _buy(question: Question, epsilon: float, noise: Noise) -> Facts:
    records = question.records
    turned = records.turned(noise.bernoulli(turning_probability(epsilon), records.people))
    return {ATTRIBUTES: turned.astype(np.float64), EPSILON: np.array([epsilon])}


def _estimates(question: Question, noisy: NDArray[np.float64], probability: float) -> Iterator[GroupSums]:
    """Estimate the sums of each of the metric's parts; public, since the labels and predictions are."""
    # At p = 1/2 the noisy attributes say nothing, and any denominator is as good.
    advantaged = (noisy - probability) / max(1 - 2 * probability, 2.0**-52)
    for members, values in part_values(question.metric, question.predictions, question.records.labels):
        people, totals = int(np.count_nonzero(members)), sums_over(members, values)
        n1 = float(np.clip(sums_over(members, advantaged[np.newaxis])[0], 1, people - 1))
        n0 = people - n1
        sum1 = np.clip(sums_over(members, values * advantaged), np.maximum(totals - n0, 0), np.minimum(totals, n1))
        yield GroupSums(sum1=sum1, sum0=totals - sum1, n1=n1, n0=n0)
