"""What features alone say about groups."""

from __future__ import annotations

import numpy as np
import pytest

from developer.reveal.logistic_models import log_likelihood_ratio

SHIFT = 1.5


def rows(group: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """Two features: one that differs by group, and noise."""
    return np.column_stack([rng.normal(SHIFT * group, 1, count), rng.normal(0, 1, count)])


@pytest.mark.parametrize("disadvantaged", [3000, 600])
def test_it_is_the_log_likelihood_ratio_whatever_the_samples_shares(disadvantaged: int) -> None:
    """For two normal laws of one variance it is linear, which a logistic regression can say exactly."""
    rng = np.random.default_rng(0)
    sample = np.concatenate([rows(0, disadvantaged, rng), rows(1, 3000, rng)])
    people = rows(0, 200, rng)
    exact = SHIFT**2 / 2 - SHIFT * people[:, 0]
    assert log_likelihood_ratio(sample, disadvantaged, people) == pytest.approx(exact, abs=0.5)


def test_features_that_say_nothing_leave_it_near_nothing() -> None:
    rng = np.random.default_rng(1)
    assert np.abs(log_likelihood_ratio(rng.normal(0, 1, (4000, 2)), 2000, rng.normal(0, 1, (100, 2)))).max() < 0.3
