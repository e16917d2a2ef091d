import numpy as np
import pytest
from scipy.stats import binom

from fairwall.laws.studies.binomial import lower_limit, upper_limit


def test_clopper_pearson_limits_cover() -> None:
    """By enumeration, so without any chance of failing by bad luck."""
    for level in (0.2, 0.01, 1e-5):
        for trials in (1, 7, 60):
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


def test_counts_need_not_be_whole():
    assert lower_limit(3, 10, 0.05) < lower_limit(3.5, 10, 0.05) < lower_limit(4, 10, 0.05)
    assert lower_limit(3.5, 10.5, 0.05) < 1 / 3 < upper_limit(3.5, 10.5, 0.05)
