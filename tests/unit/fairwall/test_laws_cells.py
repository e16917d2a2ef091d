"""How people are cut into cells of alike predictions, and what noise on them costs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from fairwall.laws.choice.cell_partition import (
    CELL_MIN,
    best_count,
    cells_scale,
    cut,
    discrete_variance,
    least_people,
    narrowed,
    usual,
)
from fairwall.laws.choice.posterior import SHARE, NoisyObservations, predicted_error
from tests.support.posterior_variances import predicted_variances


def alike(models: int, people: int, seed: int = 0) -> NDArray[np.float64]:
    """Scores of models that agree for the most part."""
    generator = np.random.default_rng(seed)
    common, own = generator.normal(size=people), generator.normal(size=(models, people))
    return 1 / (1 + np.exp(-common - 0.3 * own))


def test_partitions_are_nested_and_no_cell_is_small() -> None:
    for models, people, least in ((1, 3, CELL_MIN), (6, 19, CELL_MIN), (6, 20, CELL_MIN), (1, 57, 3), (6, 400, 1)):
        cuts = cut(alike(models, people), least)
        before = np.zeros(people, np.intp)
        assert sorted(cuts.order.tolist()) == list(range(people))
        for count in range(1, cuts.most + 1):
            cell_of = cuts.cell_of(count)
            sizes = np.bincount(cell_of)
            assert len(sizes) == count
            assert sizes.min() >= min(least, people)
            # Whoever is in one cell was in one cell before.
            assert len({*zip(cell_of.tolist(), before.tolist(), strict=True)}) == count
            before = cell_of
        assert cuts.most <= max(1, people // least)


@pytest.mark.parametrize(("least", "rounded"), [(1, 0), (CELL_MIN, 1)])
def test_very_many_are_cut_where_a_part_of_them_is_and_no_cell_is_small(least: int, rounded: int) -> None:
    """Who are alike where the part was cut, as decisions are, all go to one side."""
    values, people = alike(6, 40_000).round(rounded), 40_000
    cuts = cut(values, least)
    assert sorted(cuts.order.tolist()) == list(range(people))
    assert cuts.most > 50
    before = np.zeros(people, np.intp)
    for count in (2, 3, 10, cuts.most):
        cell_of = cuts.cell_of(count)
        assert np.bincount(cell_of, minlength=count).min() >= least
        assert len({*zip(cell_of.tolist(), before.tolist(), strict=True)}) == count
        before = cell_of
        # The same people taken for others are where they were cut, also some of them at a time.
        others = [cuts.cell_of_others(some, count) for some in np.split(values, [7, 20_000], axis=1)]
        assert np.array_equal(np.concatenate(others), cell_of)
    # They tell nearly as much as cells of few do of these.
    few = cut(values[:, :16_000], least)
    left = [within(values, cuts.cell_of(50)), within(values[:, :16_000], few.cell_of(50))]
    assert left[0] == pytest.approx(left[1], rel=0.1)


def within(values: NDArray[np.float64], cell_of: NDArray[np.intp]) -> float:
    """The mean square of what cells leave."""
    counted = np.bincount(cell_of)
    means = np.stack([np.bincount(cell_of, row) for row in values]) / counted
    return float(((values - means[:, cell_of]) ** 2).mean())


def test_a_cut_is_the_best_at_right_angles_to_the_leading_direction() -> None:
    values = alike(1, 60)
    (first,) = cut(values).at[:1].tolist()
    ordered = np.sort(values[0])
    within = [ordered[:k].var() * k + ordered[k:].var() * (60 - k) for k in range(CELL_MIN, 61 - CELL_MIN)]
    assert min(first, 60 - first) == min(CELL_MIN + int(np.argmin(within)), 50 - int(np.argmin(within)))
    # Decisions are told apart.
    decisions = (values > 0.4).astype(np.float64)
    cuts = cut(decisions)
    assert cuts.most == 2
    assert len({*zip(cuts.cell_of(2).tolist(), decisions[0].tolist(), strict=True)}) == 2


def test_the_same_predictions_are_cut_alike_and_equal_people_not_at_all() -> None:
    values = alike(3, 200)
    one, other = cut(values), cut(values.copy())
    assert (one.order.tolist(), one.at.tolist()) == (other.order.tolist(), other.at.tolist())
    assert cut(np.full((3, 200), 0.25)).most == 1


def test_an_epsilon_that_buys_no_noise_is_refused() -> None:
    for epsilon in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="epsilon"):
            cells_scale(epsilon)


def test_cells_hide_their_people_up_to_epsilon_1_and_hold_one_where_epsilon_hides_nobody() -> None:
    assert [least_people(epsilon) for epsilon in (0.1, 1.0, 2.0, 3.0, 5.0, 1e6)] == [10, 10, 3, 2, 1, 1]


def test_the_variances_are_those_of_the_discrete_law() -> None:
    k = np.arange(-4000, 4001)
    for scale in (0.2, 1.0, 30.0):
        law = np.exp(-np.abs(k) / scale)
        assert discrete_variance(scale) == pytest.approx(float(k**2 @ law / law.sum()), rel=1e-9)


def test_the_usual_size_of_sums_of_laplace_noise() -> None:
    generator = np.random.default_rng(0)
    for terms in (1, 2, 5, 40):
        drawn = np.abs(generator.laplace(size=(100_000, terms)).sum(axis=1))
        assert (np.median(drawn) / 0.6745) ** 2 == pytest.approx(usual(terms) * 2 * terms, rel=0.06)


@pytest.mark.parametrize("epsilon", [0.1, 10.0])
def test_the_error_that_is_predicted_is_that_of_the_posterior(epsilon: float) -> None:
    values = alike(5, 150)
    cuts = cut(values)
    count, error = best_count(values, cuts, cells_scale(epsilon))
    centred = values - values.mean(axis=1, keepdims=True)

    def expected(cells: int) -> float:
        rows = np.eye(cells)[cuts.cell_of(cells)].T
        people, raw = rows.sum(axis=1), np.full(cells, discrete_variance(cells_scale(epsilon)))
        noise = usual(cells) * narrowed(people, people, raw, SHARE)[1]
        seen = NoisyObservations(np.zeros(cells), rows.sum(axis=1), rows @ rows.T, centred @ rows.T, noise)
        return predicted_error(predicted_variances(centred @ centred.T, seen, 150), float(noise.sum()), 150)

    assert error == pytest.approx(expected(count), rel=1e-6)
    assert error <= min(expected(cells) for cells in {1, 2, 4, 8, cuts.most}) * (1 + 1e-6)


def test_more_epsilon_buys_more_cells() -> None:
    values = alike(20, 600)
    cuts = cut(values)
    counts = [best_count(values, cuts, cells_scale(epsilon))[0] for epsilon in (0.01, 0.1, 1.0, 10.0)]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    errors = [best_count(values, cuts, cells_scale(epsilon))[1] for epsilon in (0.01, 0.1, 1.0, 10.0)]
    assert errors == sorted(errors, reverse=True)
    # Whoever's means differ from all others' needs N0 as well, and cells make that noisy.
    assert best_count(values, cuts, 1.0, offset=1.0)[1] > best_count(values, cuts, 1.0)[1]


def law(scale: float) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return discrete Laplace noise and its probabilities."""
    noise = np.arange(-400, 401)
    weights = np.exp(-np.abs(noise) / scale)
    return noise, weights / weights.sum()


def test_what_cells_cannot_hold_is_left_out_of_counts_that_stay_right_in_the_mean() -> None:
    for scale, people in ((0.2, 3), (1.0, 1), (2.0, 7)):
        (noise, likely), raw = law(scale), discrete_variance(scale)
        squares = []
        for disadvantaged in range(people + 1):
            told, _ = narrowed(disadvantaged + noise.astype(float), np.full(801, float(people)), np.full(801, raw), 0.3)
            assert likely @ told == pytest.approx(disadvantaged, abs=1e-9)
            squares.append(likely @ (told - disadvantaged) ** 2)
            assert squares[-1] < raw
        # Its variance is told for a share of disadvantaged people.
        binomial = [math.comb(people, z) * 0.3**z * 0.7 ** (people - z) for z in range(people + 1)]
        _, (variance,) = narrowed(np.zeros(1), np.array([float(people)]), np.array([raw]), 0.3)
        assert variance == pytest.approx(np.dot(binomial, squares), rel=1e-9)


def test_one_person_has_the_variance_of_randomised_response() -> None:
    p = 1 / (1 + math.exp(1.5))
    _, (variance,) = narrowed(np.zeros(1), np.ones(1), np.array([discrete_variance(1 / 1.5)]), 0.1)
    assert variance == pytest.approx(p * (1 - p) / (1 - 2 * p) ** 2)
