import numpy as np
import pytest
from scipy.stats import binom

from sim.privacy_audit.intervals import epsilon_bound, lower_limit, reach, share, upper_limit


@pytest.mark.parametrize("level", [0.2, 0.01, 1e-5])
@pytest.mark.parametrize("trials", [1, 7, 60])
def test_clopper_pearson_limits_cover(level, trials):
    """By enumeration, so without any chance of failing by bad luck."""
    counts = np.arange(trials + 1)
    lows = np.array([lower_limit(int(count), trials, level) for count in counts])
    highs = np.array([upper_limit(int(count), trials, level) for count in counts])
    for p in np.linspace(0, 1, 101):
        chances = binom.pmf(counts, trials, p)
        assert chances[lows > p].sum() <= level * (1 + 1e-9)
        assert chances[highs < p].sum() <= level * (1 + 1e-9)


def test_limits_are_the_classical_ones():
    assert lower_limit(0, 10, 0.05) == 0.0
    assert upper_limit(10, 10, 0.05) == 1.0
    assert upper_limit(0, 100, 0.05) == pytest.approx(1 - 0.05 ** (1 / 100))
    assert lower_limit(81, 263, 0.025) == pytest.approx(0.2527, abs=1e-4)


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
