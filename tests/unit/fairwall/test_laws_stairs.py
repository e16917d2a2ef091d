"""A cube's noise in stairs: what it costs, what law a coordinate has, and where it is taken.

Statistical tests have fixed seeds and a false-alarm rate of 1e-7 each.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from numpy.typing import NDArray

from fairwall.laws.noise.linf_ball import STAIRS, CubeNoise, cube_loss, cube_scales, made_uniform
from fairwall.laws.privacy.amounts import least_scale
from fairwall.laws.privacy.single_person_tests import look_at_rows, of_cube, told_apart

FALSE_ALARM = 1e-7
LAWS = [
    CubeNoise(1 / epsilon, sides, epsilon) for sides in range(1, STAIRS + 1) for epsilon in (1.0, 2.0, 3.0, 5.0, 20.0)
]
SOME = LAWS[::4]
"""Of each number of sides, and of nearly each epsilon."""


def costs(sides: int, epsilon: float, apart: int, sizes: NDArray[np.int_], weights: NDArray[np.float64]) -> float:
    """The largest log-ratio of P(z) and P(z - v), over all v of at most `apart` in each coordinate: by enumeration.

    P is even on cubes of some sizes, in whole steps; z reaches three times as far as a person moves it.
    """
    near = np.arange(-3 * apart, 3 * apart + 1)
    z = np.array(list(itertools.product(near, repeat=sides)))

    def log(of: NDArray[np.int_]) -> NDArray[np.float64]:
        inside = np.abs(of).max(axis=1)[:, np.newaxis] <= sizes
        return np.log((inside * (weights / (2.0 * sizes + 1) ** sides)).sum(axis=1))

    here = log(z)
    moves = itertools.product((-apart, -apart + 1, 0, 1, apart), repeat=sides)
    return max(float(np.abs(here - log(z - np.array(move))).max()) for move in moves) / epsilon


def test_neighbours_cost_epsilon_and_no_more() -> None:
    for sides, apart, epsilon in ((1, 5, 3.0), (2, 3, 0.7), (3, 2, 3.0)):
        k = np.arange(60)
        for least in range(1, apart + 1):
            sizes = least + k * apart
            weights = np.exp(-epsilon * k) * (2.0 * sizes + 1) ** sides
            assert costs(sides, epsilon, apart, sizes, weights) == pytest.approx(1, rel=1e-9)
            # The broken twins: sizes nearer to each other, and a proportion that forgets one side of the cube.
            near = least + k * (apart - 1)
            assert costs(sides, epsilon, apart, near, np.exp(-epsilon * k) * (2.0 * near + 1) ** sides) > 1.5
            assert costs(sides, epsilon, apart, sizes, np.exp(-epsilon * k) * (2.0 * sizes + 1) ** (sides - 1)) > 1.05


def test_the_law_of_a_coordinate_is_a_density_with_its_variance_and_reach() -> None:
    for law in SOME:
        # A density that falls in steps: a fine grid's middles.
        x = (np.arange(400_000) + 0.5) * 4e-5 * law.scale * (law.sides + 1)
        density = np.exp(law.log_density(x)) * 2 * 4e-5 * law.scale * (law.sides + 1)
        assert density.sum() == pytest.approx(1, abs=1e-4)
        assert float(density @ x**2) == pytest.approx(law.variance(), rel=2e-3)
        for level in (0.5, 0.95, 0.999):
            assert density[x <= law.reach(level)].sum() == pytest.approx(level, abs=1e-4)
            assert law.distribution(np.array([law.reach(level), -law.reach(level)])) == pytest.approx(
                [(1 + level) / 2, (1 - level) / 2], abs=1e-12
            )
        assert law.median_abs() == law.reach(0.5)
        assert (np.diff(law.log_density(np.linspace(0, 90 * law.scale, 9001))) <= 0).all()
        assert np.isfinite(law.log_density([1e3])).all()


def test_it_is_the_law_of_a_fine_grid() -> None:
    for law in SOME:
        apart = 2**20
        sizes = round(law.gamma * apart) + np.arange(60) * apart
        weights = np.exp(-law.stair * np.arange(60)) * (2.0 * sizes + 1) ** law.sides
        found, chances = law.sizes(np.empty(0))
        kept = min(60, found.size)
        assert (sizes / apart)[:kept] == pytest.approx(found[:kept], rel=1e-12)
        assert (weights / weights.sum())[:kept] == pytest.approx(chances[:kept], rel=1e-4)


def test_samples_have_the_law() -> None:
    for law in SOME:
        drawn = np.abs(law.sample(np.random.default_rng(3), 20_000))
        for level in (0.05, 0.25, 0.5, 0.75, 0.95, 0.99):
            hits = int((drawn <= law.reach(level)).sum())
            assert scipy.stats.binomtest(hits, 20_000, level).pvalue > FALSE_ALARM


@pytest.mark.parametrize("law", [CubeNoise(0.5, 2, 2.0), CubeNoise(1 / 3, 3, 3.0)])
def test_the_coordinates_of_a_draw_are_made_uniform_numbers(law: CubeNoise) -> None:
    generator, draws = np.random.default_rng(6), 3000
    noise = law.draw_sizes(generator, (draws, 1)) * generator.uniform(-1, 1, (draws, law.sides))
    numbers = np.array([made_uniform(row, law.scale, law.stair) for row in noise])
    for of in numbers.T:
        assert scipy.stats.kstest(of, "uniform").pvalue > FALSE_ALARM
    for one, other in itertools.combinations(np.abs(2 * numbers - 1).T, 2):
        assert scipy.stats.spearmanr(one, other).pvalue > FALSE_ALARM
    # Read as noise of all sizes it is found out.
    wrong = np.array([made_uniform(row, law.scale) for row in noise])
    assert law.stair < 3 or scipy.stats.kstest(np.abs(2 * wrong - 1)[:, 0], "uniform").pvalue < FALSE_ALARM


def test_it_is_taken_where_it_is_worth_it_and_nowhere_else() -> None:
    def error(law: CubeNoise) -> float:
        return (law.median_abs() + math.sqrt(law.variance())) / 2

    taken = set()
    for epsilon in (1e-6, 0.1, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 20.0, 60.0, 200.0, 1e6):
        for sums in range(6):
            for known in (False, True):
                scales = cube_scales(sums, epsilon, size_known=known)
                law, plain = scales.law, CubeNoise(scales.scale, max(scales.sides, 1))
                assert cube_loss(sums, epsilon, size_known=known) == pytest.approx(epsilon)
                if not law.stair:
                    assert law == plain
                    continue
                assert law == CubeNoise(least_scale(epsilon), law.sides, 1 / law.scale)
                assert error(plain) >= 1.03 * error(law)
                taken.add((law.sides, epsilon))
    assert {sides for sides, _ in taken} == {1, 2, 3}
    assert min(epsilon for _, epsilon in taken) == 1.0
    assert {(1, 1.0), (2, 1.5), (3, 2.0), (3, 20.0)} <= taken
    assert not {(2, 1.0), (3, 1.5), (1, 200.0)} & taken


def test_gamma_is_the_best_and_a_function_of_what_is_public() -> None:
    law = CubeNoise(1 / 3, 2, 3.0)
    assert CubeNoise(7.0, 2, 3.0).gamma == law.gamma == 0.3125
    # Older ledgers are read by these: another choice needs another kind of fact (`compliance.mechanisms.counts`).
    found = {(d, eps): CubeNoise(1 / eps, d, eps).gamma for d in (1, 2, 3) for eps in (1.0, 2.0, 3.0, 5.0, 7.0)}
    assert [32 * gamma for gamma in found.values()] == [18, 5, 9, 3, 2, 4, 22, 10, 9, 4, 30, 24, 17, 17, 8]
    # For one side and the mean size the best gamma is known, 1/(1 + e^(epsilon/2)); this is by another measure.
    assert CubeNoise(0.2, 1, 5.0).gamma == pytest.approx(1 / (1 + math.exp(2.5)), abs=1 / 32)
    with pytest.raises(ValueError, match="stair"):
        CubeNoise(1.0, STAIRS + 1, 1.0)
    for wrong in (-1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="stair"):
            CubeNoise(1.0, 1, wrong)


def test_what_one_row_gives_away_is_what_its_density_says() -> None:
    for law in (CubeNoise(2.0, 1, 2.0), CubeNoise(1.0, 2, 3.0), CubeNoise(0.5, 3, 5.0)):
        for n, n0 in ((40, 5), (200, 60)):
            assert of_cube(law, n, n0, 1) == pytest.approx(told_apart([look_at_rows(law, n, n0, 1)]), abs=0.01)
