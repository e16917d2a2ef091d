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


def proposed_size(people: int, minority_share: float = MINORITY_SHARE) -> int:
    """Return b, the people of the smallest group that the noise is made for, in a stratum of so many people."""
    return min(max(2, math.ceil(minority_share * people)), max(2, people // 2))


def proposed_bound(metric: str, people: int, minority_share: float = MINORITY_SHARE) -> float:
    """Return B, the most that one flip moves a metric while both groups have `proposed_size` people.

    Parameters
    ----------
    metric
        A key of `fairwall.laws.metric.METRICS`.
    people
        In the metric's stratum, at least 3.
    minority_share
        In (0, 1/2].
    """
    return flip_sensitivity(metric, people, proposed_size(people, minority_share))


def released_law(bound: float, queries: int, epsilon: float, test_share: float = TEST_SHARE) -> Laplace:
    """Return the noise on each answer that passes; public.

    Parameters
    ----------
    bound
        The largest `proposed_bound` of the metric's strata.
    queries, epsilon
        m, and the budget of the whole batch, test included.
    test_share
        In (0, 1).
    """
    return Laplace(queries * bound / (epsilon * (1 - test_share)))
