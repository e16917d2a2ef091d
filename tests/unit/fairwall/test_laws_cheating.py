"""What a cheat at noise gains and how often openings catch it: by brute force, and by draws."""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy.integrate import quad

from fairwall.laws.studies import cheat_detection


@pytest.mark.parametrize(("draws", "printed"), [(1, 0.0), (2, 0.75), (5, 1.59), (10, 2.25), (100, 4.49)])
def test_the_best_of_several_noises_is_as_far_out_as_the_law_says(draws: int, printed: float) -> None:
    def cdf(x: float) -> float:
        return math.exp(x) / 2 if x < 0 else 1 - math.exp(-x) / 2

    above, _ = quad(lambda x: 1 - cdf(x) ** draws, 0, 60)
    below, _ = quad(lambda x: cdf(x) ** draws, -60, 0)
    assert cheat_detection.expected_shift(draws) == pytest.approx(above - below, abs=1e-6)
    assert cheat_detection.expected_shift(draws) == pytest.approx(printed, rel=0.05)


def test_openings_find_one_of_the_affected_as_often_as_the_law_says() -> None:
    """Over all ways in which four requests are affected and chosen."""
    for openings in range(5):
        share = 0.3
        chosen = list(combinations(range(4), openings))
        found = sum(
            share ** sum(ways) * (1 - share) ** (4 - sum(ways)) * any(ways[one] for one in some) / len(chosen)
            for ways in product((0, 1), repeat=4)
            for some in chosen
        )
        assert cheat_detection.caught(share, openings) == pytest.approx(found)
        assert cheat_detection.affected("best", 4, 0.4) == pytest.approx(0.3)
        assert cheat_detection.affected("quiet", 4, 0.4) == 0.4
        assert cheat_detection.affected("none", 4, 1.0) == 0.0


@pytest.mark.check
@pytest.mark.parametrize(
    ("draws", "openings", "least", "most"), [(5, 40, 0.99, 1.0), (2, 80, 0.0, 0.35), (1, 40, 0, 0)]
)
def test_statistics_find_the_best_of_five_noises_and_not_the_better_of_two(
    draws: int, openings: int, least: float, most: float
) -> None:
    """Of 1,000 sets of openings; seen: 997, 239 and 0."""
    rng = np.random.default_rng(3)
    noise = rng.laplace(size=(1000, draws, openings)).max(axis=1)
    found = np.mean([cheat_detection.p_value(one) < cheat_detection.NOISE_LEVEL for one in noise])
    assert least <= found <= most
