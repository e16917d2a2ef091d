"""The tests of goodness of fit: they find what differs and little else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fairwall.laws.studies import cheat_detection


@pytest.mark.check
def test_tests_of_goodness_find_what_differs_and_little_else() -> None:
    rng = np.random.default_rng(7)

    def rows(n: int, mean: float = 0.0) -> Any:
        bits = rng.integers(2, size=(n, 2))
        return np.column_stack([rng.normal(mean, size=(n, 2)), rng.integers(2, size=n), np.ones(n), bits])

    same = [cheat_detection.p_values(rows(60), rows(80), rng) for _ in range(40)]
    for test in cheat_detection.TESTS:
        # 40 fair tests at 5%: more than 8 are below with a probability of 1 in 4,000.
        assert sum(one[test] < cheat_detection.SAMPLE_LEVEL for one in same) <= 8, test
    far = cheat_detection.p_values(rows(60, 1.0), rows(80), rng)
    assert all(far[test] < cheat_detection.SAMPLE_LEVEL for test in ("ks", "wasserstein", "mmd", "energy"))


def test_wasserstein_s_distance_is_scipy_s() -> None:
    from scipy.stats import wasserstein_distance

    rng = np.random.default_rng(0)
    for column in (rng.normal(size=30), rng.integers(2, size=30) * 3.0, rng.integers(5, size=30) / 1.0):
        inside = np.arange(30) < 12
        sign = np.where(inside, 1 / 12, -1 / 18)
        (found,) = cheat_detection._wasserstein(sign[np.newaxis], column)
        assert found == pytest.approx(wasserstein_distance(column[inside], column[~inside]))
