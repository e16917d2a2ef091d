"""The joint posterior mean of a batch's gaps against a Gaussian computed the long way, person by person."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm

from fairwall.laws.choice.posterior import (
    CHANCE,
    CHANCES,
    DEVIATION,
    DOUBTED,
    FARTHEST,
    FLAT,
    HIDDEN,
    LOOSE,
    PERSON,
    SHARE,
    STRUCTURES,
    UNLIKE,
    Free,
    NoisyObservations,
    directions_of,
    posterior,
    predicted_error,
    structures,
    variances_told,
    variances_with_noise,
)
from tests.support.posterior_variances import predicted_variances


def world(
    seed: int, models: int = 4, people: int = 13, rows: int = 5, rank: int = 3
) -> tuple[NDArray[np.float64], ...]:
    """Return X of a lower rank than m, any S, and the covariance of correlated noise."""
    generator = np.random.default_rng(seed)
    values = generator.random((models, rank)) @ generator.random((rank, people))
    seen, root = generator.random((rows, people)), generator.random((rows, rows))
    return values - values.mean(axis=1, keepdims=True), seen, root @ root.T + 0.1 * np.eye(rows)


def kernels(centred: NDArray[np.float64], share: float) -> list[NDArray[np.float64]]:
    """Return I + tau Y'Y for each structure, n x n, with Y from a singular value decomposition."""
    m, n = centred.shape
    _, singular, right = np.linalg.svd(centred, full_matrices=False)
    singular, right = singular[singular > 1e-6], right[singular > 1e-6]
    found = []
    for flatness, multiple in STRUCTURES:
        rows = singular[:, np.newaxis] ** (1 - flatness) * right
        own = centred @ rows.T @ rows @ centred.T
        # tau_1: the gaps that it adds have a mean square of DEVIATION^2.
        unit = share * (1 - share) * (DEVIATION * n) ** 2 / (np.trace(own) / m)
        found.append(np.eye(n) + multiple * unit * rows.T @ rows)
    return found


def test_it_is_the_gaussian_posterior_of_people() -> None:
    for seed, free in ((0, 0), (1, 1), (2, 2), (3, 0), (4, 2)):
        centred, rows, noise = world(seed)
        directions, own = np.random.default_rng((seed, free)).normal(size=(13, free)), np.array([3.0, 0.2])[:free]
        parts = LOOSE if free else ((1.0, 1.0),)
        n, share = centred.shape[1], 0.1 + 0.1 * seed
        values = rows @ (np.random.default_rng(seed).random(n) < share)
        off = values - share * rows.sum(axis=1)
        none = 1e-9 * np.trace(rows @ rows.T) / 5 * np.eye(5)
        spread = share * (1 - share)
        # What no sum sees may go with the protected attribute.
        left = centred @ (np.eye(n) - spread * rows.T @ np.linalg.inv(spread * rows @ rows.T + none) @ rows) @ centred.T
        squares, axes = np.linalg.eigh(left)
        effects = axes[:, -1] @ left / squares[-1]
        correlation = HIDDEN / np.linalg.matrix_rank(centred) ** (1 / 3)
        hidden = correlation**2 * spread * n * squares[-1] * np.outer(effects, effects)
        # A model is unlike the others, chance is larger in one than in most, and so is one person.
        each = np.diag(left)
        more = [
            spread * HIDDEN**2 * n * max(one - np.median(each), 0.0) * (one > UNLIKE * np.median(each))
            + CHANCES * spread * one
            + min(one, PERSON)
            for one in each
        ]
        possible = centred @ np.linalg.pinv(centred)
        hidden += possible @ (left * np.sqrt(np.outer(more, more) / np.outer(each, each))) @ possible
        flat = FLAT * spread * rows.T @ np.linalg.inv(FLAT * spread * rows @ rows.T + noise)
        alone, clouded = centred @ flat @ off, centred @ flat @ noise @ flat.T @ centred.T
        logs, means, covariances, unseen = [], [], [], []
        for (number, kernel), (part, odds) in itertools.product(enumerate(kernels(centred, share)), parts):
            prior = spread * kernel + part**2 * directions * own @ directions.T
            covariance = rows @ prior @ rows.T + noise
            gain = prior @ rows.T @ np.linalg.inv(covariance)
            means.append(centred @ gain @ off)
            covariances.append(centred @ (prior - gain @ rows @ prior) @ centred.T + hidden)
            exact = prior @ rows.T @ np.linalg.inv(rows @ prior @ rows.T + none)
            unseen.append(centred @ (prior - exact @ rows @ prior) @ centred.T + hidden + clouded)
            likelier = min(4, CHANCE) * (len(STRUCTURES) - 1) if number == 0 else 1
            log = -0.5 * off @ np.linalg.solve(covariance, off) - 0.5 * np.linalg.slogdet(covariance)[1]
            logs.append(log + np.log(likelier * odds))
        weights = np.exp(np.array(logs) - max(logs))
        weights /= weights.sum()
        of_free = Free(rows @ directions, centred @ directions, own) if free else None
        seen = NoisyObservations(values, rows.sum(axis=1), rows @ rows.T, centred @ rows.T, noise, of_free)
        found = posterior(centred @ centred.T, seen, share, n)
        assert found.mean == pytest.approx(weights @ np.array(means), rel=1e-6, abs=1e-9)
        assert found.alone == pytest.approx(alone, rel=1e-6, abs=1e-9)
        assert found.noise == pytest.approx(np.sqrt(np.diag(clouded)), rel=1e-4)
        assert found.likely == pytest.approx(np.concatenate([DOUBTED * weights, (1 - DOUBTED) * weights]), rel=1e-6)
        laws = [(alone, each) for each in unseen] + list(zip(means, covariances, strict=True))
        for number, (mean, covariance) in enumerate(laws):
            assert found.directions @ found.components[number] == pytest.approx(mean, rel=1e-5, abs=1e-7)
            told = found.directions @ found.covariances[number] @ found.directions.T
            assert told == pytest.approx(covariance, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_so_far_from_the_answer_is_what_the_mixture_says(seed: int) -> None:
    centred, rows, noise = world(seed)
    seen = NoisyObservations(2 * rows.sum(axis=1), rows.sum(axis=1), rows @ rows.T, centred @ rows.T, noise)
    found = posterior(centred @ centred.T, seen, 0.2, 13).near()
    both = np.random.default_rng(seed).normal(size=(3, 4))
    for level, combinations in ((0.5, None), (0.95, None), (0.95, both)):
        rows_of = found.directions if combinations is None else combinations @ found.directions
        mean = found.mean if combinations is None else combinations @ found.mean
        reached = found.within(level, 0.3, combinations)
        inside = np.zeros(len(reached))
        for weight, component, covariance in zip(found.likely, found.components, found.covariances, strict=True):
            deviation = np.sqrt(np.einsum("ij,jk,ik->i", rows_of, covariance, rows_of) + 0.3)
            off = rows_of @ component - mean
            inside += weight * (norm.cdf((reached - off) / deviation) - norm.cdf((-reached - off) / deviation))
        assert inside == pytest.approx(level, abs=1e-9)
    # Draws are in the middle of it as often.
    drawn = np.abs(found.draws(20_000, np.random.default_rng(seed)) - found.mean)
    assert (drawn <= found.within(0.95)).mean(axis=0) == pytest.approx(0.95, abs=0.01)


def test_noise_may_be_given_by_its_variances() -> None:
    centred, rows, noise = world(1)
    apart = np.diag(noise)
    some = rows.sum(axis=1) / 5
    ways = [
        posterior(
            centred @ centred.T,
            NoisyObservations(some, rows.sum(axis=1), rows @ rows.T, centred @ rows.T, how),
            0.2,
            13,
        )
        for how in (apart, np.diag(apart))
    ]
    assert ways[0].mean.tolist() == ways[1].mean.tolist()


@pytest.mark.parametrize("whole", [False, True], ids=["variances", "covariance"])
def test_an_answer_is_no_farther_from_what_sums_alone_say_than_a_deviation(whole: bool) -> None:
    centred, rows, noise = world(2)
    noise = noise if whole else np.diag(noise)
    values = 3 * rows.sum(axis=1) * np.array([0.9, 0.1, 0.7, 0.0, 0.6])
    seen = NoisyObservations(values, rows.sum(axis=1), rows @ rows.T, centred @ rows.T, noise)
    found = posterior(centred @ centred.T, seen, 0.2, 13)
    alone = centred @ np.linalg.pinv(rows) @ (values - 0.2 * seen.ones)
    back = centred @ np.linalg.pinv(rows)
    deviation = np.sqrt(np.diag(back @ (noise if whole else np.diag(noise)) @ back.T))
    limited = found.near()
    assert (np.abs(found.mean - alone) > deviation).any()
    assert limited.mean == pytest.approx(
        np.clip(found.mean, alone - FARTHEST * deviation, alone + FARTHEST * deviation), abs=1e-2
    )
    # How sure it is, is told of the answer itself, and not of what it was moved back from.
    assert (limited.within(0.95) != found.within(0.95)).any()


def test_equal_predictions_have_no_gap() -> None:
    rows = np.eye(3, 7)
    seen = NoisyObservations(np.ones(3), rows.sum(axis=1), rows @ rows.T, np.zeros((2, 3)), np.ones(3))
    found = posterior(np.zeros((2, 2)), seen, 0.3, 7)
    assert (found.mean == 0).all()
    assert found.within(0.95) == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("seed", range(2))
def test_what_is_predicted_is_the_mean_variance_before_anything_is_seen(seed: int) -> None:
    centred, rows, noise = world(seed)
    expected = []
    for kernel in kernels(centred, SHARE):
        prior = SHARE * (1 - SHARE) * kernel
        spread = prior - prior @ rows.T @ np.linalg.inv(rows @ prior @ rows.T + noise) @ rows @ prior
        expected.append(np.trace(centred @ spread @ centred.T) / len(centred))
    products = centred @ centred.T
    seen = NoisyObservations(np.zeros(5), rows.sum(axis=1), rows @ rows.T, centred @ rows.T, noise)
    assert predicted_variances(products, seen, 13) == pytest.approx(expected, rel=1e-6)
    # Independent noise on each u: S = X.
    own = NoisyObservations(np.zeros(4), np.zeros(4), products, products, np.full(4, 0.3))
    squares, _ = directions_of(products)
    assert variances_with_noise(squares, 4, 0.3, 13) == pytest.approx(predicted_variances(products, own, 13), rel=1e-6)


@pytest.mark.parametrize("many", [2, 9])
def test_the_variance_with_cells_is_that_of_disjoint_sums(many: int) -> None:
    centred, _, _ = world(5)
    products, cells = centred @ centred.T, np.eye(many)[:, np.arange(13) % many]
    noise = np.geomspace(0.5, 4.0, many)
    seen = NoisyObservations(np.zeros(many), cells.sum(axis=1), cells @ cells.T, centred @ cells.T, noise)
    squares, directions = directions_of(products)
    told = directions.T @ seen.cross / np.sqrt(SHARE * (1 - SHARE) * seen.ones + noise)
    summed = variances_told(squares, told, structures(squares, 4, SHARE, 13))
    assert summed == pytest.approx([4 * mean for mean in predicted_variances(products, seen, 13)], rel=1e-6)


def test_an_unknown_size_adds_to_the_error_of_large_gaps() -> None:
    none, some = (predicted_error([1.0] * len(STRUCTURES), size, 100) for size in (0.0, 25.0))
    assert none == pytest.approx(1 / (SHARE * (1 - SHARE) * 100))
    assert some > none


def test_the_strengths_add_the_gaps_that_they_state() -> None:
    centred, _, _ = world(4)
    m, n = centred.shape
    squares, directions = directions_of(centred @ centred.T)
    for (flatness, strength), (_, multiple) in zip(structures(squares, m, 0.3, n), STRUCTURES, strict=True):
        added = directions**2 @ (0.21 * strength * squares ** (2 - flatness)) / (0.21 * n) ** 2
        assert added.mean() == pytest.approx(multiple * DEVIATION**2)
