"""Propose-test-release: the proposed bound, and the noise on answers that pass the test.

The proof is in `compliance.mechanisms.propose_test_release`.
"""

import math

from fairwall.laws.noise import Laplace
from fairwall.laws.sensitivity import flip_sensitivity

MINORITY_SHARE = 0.05
"""Default share of the smallest group for which the noise is calibrated."""

TEST_SHARE = 0.25
"""Default part of epsilon that the test spends."""


def proposed_size(people: int, minority_share: float = MINORITY_SHARE, minimum_group: int = 1) -> int:
    """Return b, the least size of both groups for which the noise is calibrated, in a stratum of `people` people.

    At least g+1: nobody leaves a smaller group, so that the bound then always holds.
    """
    least = minimum_group + 1
    return min(max(least, math.ceil(minority_share * people)), max(least, people // 2))


def proposed_bound(metric: str, people: int, minority_share: float = MINORITY_SHARE, minimum_group: int = 1) -> float:
    """Return B, the most that one flip moves a metric while both groups have at least `proposed_size` people.

    There are at least 2g+1 people in its stratum, and the minority share is in (0, 1/2].
    """
    return flip_sensitivity(metric, people, proposed_size(people, minority_share, minimum_group))


def released_law(bound: float, queries: int, epsilon: float, test_share: float = TEST_SHARE) -> Laplace:
    """Return the noise on each answer that passes; public.

    `bound` is the largest `proposed_bound` of the metric's strata, epsilon the budget of the whole batch, test
    included, and `test_share` the test's part, in (0, 1).
    """
    return Laplace(queries * bound / (epsilon * (1 - test_share)))
