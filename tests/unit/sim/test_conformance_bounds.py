"""How often what two requests share is found where they share nothing, and that it is found where they do."""

from __future__ import annotations

import numpy as np
import pytest

from sim.conformance import bounds


@pytest.mark.parametrize("size", [2, 5, 80])
def test_independent_numbers_go_together_as_often_as_is_said(size: int) -> None:
    rng = np.random.default_rng(size)
    pairs = rng.uniform(-1, 1, (4000, 2, size))
    share = np.mean([bounds.is_unlikely_product(one, other, 0.1) for one, other in pairs])
    assert share == pytest.approx(0.1, abs=0.02)  # four standard errors


def test_noise_that_is_shared_in_part_is_found_and_one_number_says_nothing() -> None:
    rng = np.random.default_rng(1)
    one, other = rng.uniform(-1, 1, (2, 80))
    assert bounds.is_unlikely_product(one, -one, 1e-12)
    assert bounds.is_unlikely_product(one, np.where(np.arange(80) % 8 > 0, one, other), 1e-12)
    assert not bounds.is_unlikely_product(one[:1], one[:1], 1e-12)
