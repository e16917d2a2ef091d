"""The privacy of a perturbed objective in one dimension, by its densities and an integral: nothing is drawn.

In `test_training_privacy` privacy losses are drawn in three dimensions.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from developer.training.objective import ROW_NORM, ridge
from fairwall.laws.noise.gaussian import gaussian_multiplier

Records = tuple[NDArray[np.float64], NDArray[np.float64]]


def density(
    w: NDArray[np.float64], records: Records, weight: float, across: float, beyond: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The perturbation b whose minimum is w, and its slope: the density of w is that of b, times it."""
    rows, labels = records
    scores = 0.5 + 0.5 * np.tanh(0.5 * np.outer(w, rows))
    b = -((scores - labels) @ rows + weight * w + (across * w + beyond) * across)
    return b, (scores * (1 - scores)) @ rows**2 + weight + across**2


def reached(less: float, *, pure: bool) -> float:
    """The largest delta (pure: epsilon) of one record more or less, over what is promised, in 10 small worlds."""
    rng, most = np.random.default_rng(0), 0.0
    for _ in range(10):
        epsilon, delta = math.exp(rng.uniform(math.log(0.1), math.log(4))), 10 ** rng.uniform(-5, -1.3)
        kappa, n = epsilon * rng.uniform(0.02, 0.6), int(rng.integers(0, 6))
        rows, labels = ROW_NORM * rng.choice([-1.0, 1.0, 0.4], n), rng.integers(0, 2, n).astype(float)
        across, beyond = rng.choice([0.0, 1.0]) * rng.normal(), rng.normal()
        spread = less * ROW_NORM * (1 / (epsilon - kappa) if pure else gaussian_multiplier(epsilon - kappa, delta / 2))
        end = (40 * spread + 3 * n + 5) / ridge(kappa)
        w = np.sinh(np.linspace(-np.arcsinh(50 * end), np.arcsinh(50 * end), 16_001)) / 50
        for row, label in ((ROW_NORM, 1.0), (ROW_NORM, 0.0), (-ROW_NORM, 1.0)):
            logs = []
            for records in ((rows, labels), (np.append(rows, row), np.append(labels, label))):
                b, slope = density(w, records, ridge(kappa), across, beyond)
                of_b = -np.abs(b) / spread - math.log(2 * spread) if pure else -((b / spread) ** 2) / 2
                logs.append(of_b - (0 if pure else math.log(spread * math.sqrt(2 * math.pi))) + np.log(slope))
                assert np.trapezoid(np.exp(logs[-1]), w) == pytest.approx(1, abs=1e-3)
            for loss, there in ((logs[0] - logs[1], logs[0]), (logs[1] - logs[0], logs[1])):
                over = -np.expm1(np.minimum(epsilon - loss, 0))
                found = loss.max() / epsilon if pure else np.trapezoid(np.exp(there) * over, w) / delta
                most = max(most, float(found))
    return most


@pytest.mark.parametrize("pure", [True, False])
def test_what_is_promised_is_kept(pure: bool) -> None:
    assert 0.05 < reached(1.0, pure=pure) <= 1


@pytest.mark.parametrize("pure", [True, False])
def test_half_of_the_perturbation_is_found_out(pure: bool) -> None:
    assert reached(0.5, pure=pure) > 1.2
