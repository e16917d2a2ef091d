"""Renyi divergences against their definition, and what a sum of them promises."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.integrate

from fairwall.laws.noise.gaussian import gaussian_epsilon
from fairwall.laws.privacy.amounts import filter_order, laplace_divergence, renyi_epsilon, response_divergence

GRID = list(itertools.product((0.01, 0.3, 1.0, 4.0, 30.0), (1.02, 1.5, 2.0, 9.0, 120.0)))


def test_the_divergence_of_whatever_is_private_is_that_of_randomised_response() -> None:
    for epsilon, order in GRID[::4]:
        truth = -math.log1p(math.exp(-epsilon))
        lie = truth - epsilon
        logs = [order * one + (1 - order) * other for one, other in ((truth, lie), (lie, truth))]
        exact = float(np.logaddexp(*logs)) / (order - 1)
        assert exact * (1 - 1e-9) <= response_divergence(epsilon, order) <= exact * (1 + 2e-6)


@pytest.mark.parametrize(("epsilon", "order"), GRID[::4])
def test_the_divergence_of_laplace_noise_is_its_integral(epsilon: float, order: float) -> None:
    def density(x: float) -> float:
        # Of noise of scale 1 at 0 and at epsilon, over the larger of what it is at both.
        return 0.5 * math.exp(-order * abs(x) - (1 - order) * abs(x - epsilon) - (order - 1) * epsilon)

    parts = [scipy.integrate.quad(density, *ends, epsrel=1e-12)[0] for ends in ((-60, 0), (0, epsilon), (epsilon, 99))]
    exact = math.log(math.fsum(parts)) / (order - 1) + epsilon
    told = laplace_divergence(epsilon, order)
    assert exact * (1 - 1e-8) <= told <= exact * (1 + 2e-6)
    assert told <= response_divergence(epsilon, order) * (1 + 1e-6)


def test_tiny_losses_have_half_of_order_times_their_square_and_endless_ones_no_bound() -> None:
    for divergence in (response_divergence, laplace_divergence):
        assert divergence(1e-6, 8.0) == 4e-12
        assert divergence(math.inf, 8.0) == math.inf


@pytest.mark.parametrize(("multiplier", "delta"), [(2.0, 1e-6), (20.0, 1e-3)])
def test_gaussian_noise_is_promised_no_less_than_it_costs_and_not_much_more(multiplier: float, delta: float) -> None:
    least = min(renyi_epsilon(a / (2 * multiplier**2), a, delta) for a in np.geomspace(1.1, 1e4, 400).tolist())
    assert gaussian_epsilon(multiplier, delta) <= least <= 1.3 * gaussian_epsilon(multiplier, delta)
    assert renyi_epsilon(0.0, 2.0, 0.9) == 0.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (2.0, 1e-5), (10.0, 1e-2)])
def test_no_order_has_room_for_many_more_small_losses(epsilon: float, delta: float) -> None:
    def covered(order: float) -> float:
        return (epsilon - renyi_epsilon(0.0, order, delta)) / response_divergence(1e-3, order)

    chosen = covered(filter_order(epsilon, delta))
    best = max(covered(order) for order in np.geomspace(1.01, 1e5, 2000).tolist())
    assert 0.99 * best <= chosen <= best * 1.01
