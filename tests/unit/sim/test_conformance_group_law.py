"""The tester's law of counts by group: sound noise becomes uniform numbers, and noise of another law does not."""

from __future__ import annotations

import numpy as np
import pytest

from fairwall.laws.groups import balanced
from sim.conformance import group_law, law
from sim.conformance.calls import Violation
from sim.conformance.world import Result

RNG = np.random.default_rng(3)


# A false alarm has a probability of at most 1e-10 each.
@pytest.mark.parametrize(("rate", "groups"), [(1e-4, 8), (0.03, 2), (0.3, 6), (2.0, 8), (9.0, 3)])
def test_noise_of_its_law_becomes_uniform(rate: float, groups: int) -> None:
    uniform = group_law.uniform(balanced(RNG, rate, 1500, groups).astype(np.float64), rate)
    assert uniform.shape == (1500, groups - 1)
    law.require_noise_everywhere(2 * uniform - 1)


@pytest.mark.parametrize(("rate", "groups"), [(1e-4, 8), (0.3, 6), (1.0, 3)])
def test_half_of_the_noise_and_none_are_convicted(rate: float, groups: int) -> None:
    for noise in (balanced(RNG, 2 * rate, 400, groups), np.zeros((400, groups))):
        with pytest.raises(Violation):
            law.require_noise(2 * group_law.uniform(noise.astype(np.float64), rate).ravel() - 1)


def test_the_same_noise_twice_is_convicted() -> None:
    noise = balanced(RNG, 0.2, 400, 5).astype(np.float64)
    one, other = (group_law.uniform(noise, 0.2).ravel() for _ in range(2))
    with pytest.raises(Violation, match="the same noise"):
        law.require_unrelated(*(Result(None, uniform=each, discrete=True) for each in (one, other)))  # type: ignore[arg-type]
