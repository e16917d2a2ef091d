import numpy as np
import pytest
from scipy.stats import binom

from sim.privacy_audit.sampling import epsilon_bound, reach, share


@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_epsilon_bound_is_wrong_at_most_at_its_level(delta):
    """By enumeration, for randomized response that has epsilon and delta to the full."""
    trials, level, epsilon = 40, 0.1, 1.0
    p = delta + (1 - delta) * np.exp(epsilon) / (1 + np.exp(epsilon))
    q = (1 - delta) / (1 + np.exp(epsilon))
    counts = np.arange(trials + 1)
    wrong = np.array(
        [[epsilon_bound(i, j, trials, delta, level) > epsilon for j in counts.tolist()] for i in counts.tolist()]
    )
    chances = np.outer(binom.pmf(counts, trials, p), binom.pmf(counts, trials, q))
    assert chances[wrong].sum() <= level


def test_epsilon_bound_has_its_limits():
    assert epsilon_bound(0, 0, 100, 0.0, 0.01) == 0.0
    assert epsilon_bound(50, 50, 100, 0.0, 0.01) == 0.0
    assert epsilon_bound(100, 0, 100, 0.99, 0.01) == 0.0
    assert reach(10_000, 0.0, 1e-5) == epsilon_bound(10_000, 0, 10_000, 0.0, 1e-5) > 6


def test_shares_of_the_level_add_up_to_less_than_it():
    assert 0.999e-5 < sum(share(1e-5, look) for look in range(1, 2000)) < 1e-5
