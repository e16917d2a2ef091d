"""Nobody is accused by the code without a proof: what a mechanism does with coins of its own may not be known."""

import numpy as np
import pytest

from sim.privacy_audit.greybox import faults
from sim.privacy_audit.pairs import worst_pairs
from sim.privacy_audit.subject import load
from tests.twins import own_coins


def found(name, epsilon):
    mechanism = load(f"{own_coins.__file__}:{name}")
    return faults(mechanism, worst_pairs("sp", 10, 2, np.random.default_rng(0))[::3], epsilon, 0.0)


@pytest.mark.parametrize(("name", "epsilon"), [("warner", 1.0), ("by_arithmetic", 0.5)])
def test_a11_responses_by_coins_of_their_own_are_sound(name, epsilon):
    assert found(name, epsilon) == ()


@pytest.mark.parametrize("name", ["by_a_draw", "added_afterwards", "cheap_warner"])
def test_a11_what_nobody_can_follow_is_not_known(name):
    faulty = found(name, 1.0)
    assert faulty
    assert not any(fault.proven for fault in faulty)
