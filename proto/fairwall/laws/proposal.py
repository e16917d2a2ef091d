"""What propose-test-release proposes, and the noise on what passes its test.

The proof is in `compliance.mechanisms.propose_test_release`.
"""

import math

from fairwall.laws.noise import Laplace
from fairwall.laws.sensitivity import flip_sensitivity

MINORITY_SHARE = 0.05
"""The least share of a smaller group that the noise is made for, unless a policy says otherwise."""

TEST_SHARE = 0.25
"""The part of epsilon that the test spends, unless a policy says otherwise."""


def proposed_size(people: int, minority_share: float = MINORITY_SHARE, minimum_group: int = 1) -> int:
    """Return b, the people of the smallest group that the noise is made for, in a stratum of so many people.

    At least g+1: nobody leaves a smaller group, so that the bound then always holds.
    """
    least = minimum_group + 1
    return min(max(least, math.ceil(minority_share * people)), max(least, people // 2))


def proposed_bound(metric: str, people: int, minority_share: float = MINORITY_SHARE, minimum_group: int = 1) -> float:
    """Return B, the most that one flip moves a metric while both groups have `proposed_size` people.

    There are at least 2g+1 people in its stratum, and the minority share is in (0, 1/2].
    """
    return flip_sensitivity(metric, people, proposed_size(people, minority_share, minimum_group))


def released_law(bound: float, queries: int, epsilon: float, test_share: float = TEST_SHARE) -> Laplace:
    """Return the noise on each answer that passes; public.

    Given are the largest `proposed_bound` of the metric's strata, m, the budget of the whole batch, test included, and
    the test's part of it, in (0, 1).
    """
    return Laplace(queries * bound / (epsilon * (1 - test_share)))
