"""The sums that a batch shares: which are chosen, and that the error promised is the one that comes about."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from fairwall.laws.cube import CubeNoise, coordinates
from fairwall.laws.low_rank import RANKS, best_measurement
from fairwall.laws.posterior import SHARE, Seen, posterior, structures
from tests.posterior_variances import predicted_variances

STEP = 2.0**-20


def alike(models: int, n: int, directions: int, seed: int = 1) -> NDArray[np.float64]:
    """Scores of models that share a few directions."""
    generator = np.random.default_rng(seed)
    z = generator.standard_normal((models, directions)) @ generator.standard_normal((directions, n))
    scores: NDArray[np.float64] = 1 / (1 + np.exp(-z))
    return scores


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1e4])
def test_a_flip_moves_each_sum_by_at_most_1(epsilon: float, known: bool) -> None:
    measured = best_measurement(alike(30, 200, 3), epsilon, STEP, size_known=known)
    assert np.array_equal(measured.steps, np.rint(measured.steps))
    assert np.abs(measured.steps).max() == 1 / STEP
    assert (measured.steps[0] == 1 / STEP).all() == (not known)


def test_models_that_agree_share_sums_and_others_have_their_own() -> None:
    few = best_measurement(alike(40, 500, 1), 1.0, STEP, size_known=True)
    assert len(few.steps) <= 3
    apart = np.random.default_rng(2).random((4, 500))
    own = best_measurement(apart, 5.0, STEP, size_known=True)
    assert np.array_equal(own.steps, coordinates(apart, STEP).steps)
    ranks = [len(best_measurement(alike(40, 500, 8), e, STEP, size_known=True).steps) for e in (0.05, 1.0, 20.0)]
    assert ranks == sorted(ranks)
    assert ranks[0] < ranks[-1]
    assert {*ranks} <= {*RANKS, 40}


def test_the_error_promised_is_that_of_the_posterior() -> None:
    values, epsilon = alike(12, 300, 3), 2.0
    measured = best_measurement(values, epsilon, STEP, size_known=True)
    people, centred = measured.steps * STEP, values - values.mean(axis=1, keepdims=True)
    law = CubeNoise(1 / epsilon, len(people))
    noise = np.full(len(people), law.variance())
    seen = Seen(np.zeros(len(people)), people.sum(axis=1), people @ people.T, centred @ people.T, noise)
    of_gaps = [math.sqrt(v) / (SHARE * (1 - SHARE) * 300) for v in predicted_variances(centred @ centred.T, seen, 300)]
    assert measured.error == pytest.approx(np.mean(of_gaps), rel=1e-6)
    # And it comes about: among people disadvantaged by chance alone, the first structure.
    generator, errors = np.random.default_rng(3), []
    for _ in range(300):
        z = (generator.random(300) < SHARE).astype(np.float64)
        drawn = generator.gamma(law.sides + 1, law.scale) * generator.uniform(-1, 1, law.sides)
        found = posterior(centred @ centred.T, Seen(people @ z + drawn, *_rest(seen)), SHARE, 300)
        errors.append(found.mean - centred @ z)
    assert np.sqrt(np.mean(np.square(errors))) / (SHARE * (1 - SHARE) * 300) <= 1.3 * of_gaps[0]
    assert structures(np.ones(1), 1, SHARE, 300)[0][1] == 0


def _rest(seen: Seen) -> tuple[NDArray[np.float64], ...]:
    return seen.ones, seen.gram, seen.cross, seen.noise


@pytest.mark.parametrize("known", [False, True])
def test_where_all_predict_the_same_for_everybody_nothing_but_n0_is_measured(known: bool) -> None:
    measured = best_measurement(np.full((3, 20), 0.3), 1.0, STEP, size_known=known)
    assert measured.steps.shape == (0 if known else 1, 20)
    assert measured.error == math.inf


def test_a_tiny_and_a_large_epsilon_are_no_trouble() -> None:
    for epsilon in (1e-9, 1e9):
        for values in (alike(5, 40, 2), np.eye(8), np.vstack([np.eye(4), 1 - np.eye(4)])):
            assert math.isfinite(best_measurement(values, epsilon, STEP, size_known=False).error)
