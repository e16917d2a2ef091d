"""The cube's law: its coordinates, its one-dimensional shadow, and what a flip costs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats

from fairwall.laws.noise.distributions import Laplace
from fairwall.laws.noise.linf_ball import TOGETHER, CubeNoise, coordinates, cube_loss, cube_scales, made_uniform

FALSE_ALARM = 1e-7


def discrete(sides: int, rate: float, most: int) -> np.ndarray:
    """P(T = t) for t = 0 .. most: proportional to e^(-rate t) (2t+1)^sides."""
    t = np.arange(most + 1.0)
    logs = sides * np.log(2 * t + 1) - rate * t
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def test_one_side_is_laplace() -> None:
    x = np.linspace(-30, 30, 61)
    assert CubeNoise(0.7, 1).log_density(x) == pytest.approx(Laplace(0.7).log_density(x))
    assert CubeNoise(0.7, 1).median_abs() == pytest.approx(Laplace(0.7).median_abs())
    assert CubeNoise(0.0, 3).log_density([0.0, 1.0]).tolist() == [0.0, -math.inf]
    assert CubeNoise(0.0, 3).sample(np.random.default_rng(1), 2).tolist() == [0.0, 0.0]


def test_the_law_of_a_coordinate_is_a_density_with_its_variance_and_reach() -> None:
    for sides in (1, 5, 401):
        law = CubeNoise(0.5, sides)
        x = np.linspace(0, 0.5 * (sides + 12 * math.sqrt(sides) + 40), 200_001)
        density = np.exp(law.log_density(x))
        assert 2 * scipy.integrate.trapezoid(density, x) == pytest.approx(1, abs=1e-6)
        assert 2 * scipy.integrate.trapezoid(density * x * x, x) == pytest.approx(law.variance(), rel=1e-6)
        for level in (0.5, 0.95, 0.99):
            inside = x <= law.reach(level)
            assert 2 * scipy.integrate.trapezoid(density[inside], x[inside]) == pytest.approx(level, abs=1e-3)
        # Where the density is below every float64 number it goes on as it did.
        far = law.log_density(0.5 * np.array([600.0, 700.0, 720.0, 900.0]) + 0.5 * sides)
        slopes = np.diff(far) / np.array([100.0, 20.0, 180.0])
        assert (np.diff(slopes) < 0.02).all()
        assert (slopes < 0).all()


@pytest.mark.parametrize("sides", [1, 26])
def test_the_law_of_a_coordinate_is_that_of_a_fine_grid(sides: int) -> None:
    rate = 1e-3
    of_size = discrete(sides, rate, 200_000)
    t = np.arange(of_size.size)
    law = CubeNoise(1 / rate, sides)
    assert float(of_size @ (t * (t + 1.0))) / 3 == pytest.approx(law.variance(), rel=1e-3)
    for level in (0.5, 0.95):
        reach = math.floor(law.reach(level))
        within = float(of_size @ np.minimum(1.0, (2 * reach + 1) / (2 * t + 1)))
        assert within == pytest.approx(level, abs=1e-3)


def test_samples_have_the_law() -> None:
    drawn = np.abs(CubeNoise(2.0, 6).sample(np.random.default_rng(3), 20_000))
    levels = np.linspace(0.05, 0.95, 19)
    below = [int((drawn <= CubeNoise(2.0, 6).reach(level)).sum()) for level in levels]
    for hits, level in zip(below, levels.tolist(), strict=True):
        assert scipy.stats.binomtest(hits, 20_000, level).pvalue > FALSE_ALARM


def test_the_coordinates_of_a_draw_are_independent_uniform_numbers_one_after_the_other() -> None:
    generator, draws, sides = np.random.default_rng(6), 4000, 5
    noise = generator.gamma(sides + 1, 0.3, (draws, 1)) * generator.uniform(-1, 1, (draws, sides))
    numbers = np.array([made_uniform(row, 0.3) for row in noise])
    for of in numbers.T:
        assert scipy.stats.kstest(of, "uniform").pvalue > FALSE_ALARM
    sizes = np.abs(2 * numbers - 1)
    for one, other in itertools.combinations(range(sides), 2):
        assert scipy.stats.spearmanr(np.abs(noise[:, one]), np.abs(noise[:, other])).pvalue < FALSE_ALARM
        assert scipy.stats.spearmanr(sizes[:, one], sizes[:, other]).pvalue > FALSE_ALARM
    many = made_uniform(generator.gamma(401, 1.0) * generator.uniform(-1, 1, 400), 1.0)
    assert scipy.stats.kstest(many, "uniform").pvalue > FALSE_ALARM


def test_arguments_out_of_range() -> None:
    for scale in (-1.0, math.nan, math.inf):
        with pytest.raises(ValueError, match="scale"):
            CubeNoise(scale, 1)
    with pytest.raises(ValueError, match="side"):
        CubeNoise(1.0, 0)
    with pytest.raises(ValueError, match="epsilon"):
        cube_scales(3, 0.0)


@pytest.mark.parametrize("known", [False, True])
def test_a_batch_costs_epsilon(known: bool) -> None:
    for sums in (0, 1, TOGETHER, TOGETHER + 1, 400):
        assert cube_loss(sums, 0.7, size_known=known) == pytest.approx(0.7)
        scales = cube_scales(sums, 0.7, size_known=known)
        assert scales.sides == sums + scales.together
        assert not (known and (scales.together or scales.size))


@pytest.mark.parametrize("step", [1.0, 2.0**-20])
def test_coordinates_are_whole_and_move_by_at_most_1(step: float) -> None:
    values = np.random.default_rng(4).random((6, 40)) * 10.0 ** -np.arange(6.0)[:, None]
    told = coordinates([values[:2], values[2:]], step)
    steps = told.of(values)
    assert np.array_equal(steps, np.rint(steps))
    assert (np.abs(steps).max(axis=1) == 1 / step).all()
    back = told.sums((steps * step).T).T + told.centres[:, None]
    assert np.abs(back - values).max(axis=1) == pytest.approx(0, abs=0.5 * step)
    assert (np.abs(back - values).max(axis=1) <= (0.5 * step + 1e-12) * told.halves + 1e-15).all()


def test_models_that_say_the_same_share_a_coordinate() -> None:
    one = np.array([0.0, 1.0, 1.0, 0.0, 1.0])
    values = np.stack([one, 1 - one, 0.25 + one / 2, np.full(5, 0.3), np.roll(one, 1)])
    told = coordinates([values[:1], values[1:]], 2.0**-10)
    assert told.place.tolist() == [0, 0, 0, -1, 1]
    assert told.sums((told.of(values) * 2.0**-10).sum(axis=1)) + 5 * told.centres == pytest.approx(values.sum(axis=1))
    nothing = coordinates([np.full((2, 5), 0.4)], 2.0**-10)
    assert nothing.of(np.full((2, 5), 0.4)).shape == (0, 5)
    assert nothing.sums(np.zeros(0)).tolist() == [0.0, 0.0]


def test_shifted_by_a_flip_the_grid_law_changes_by_at_most_epsilon() -> None:
    for sides in (1, 2, 3):
        # By enumeration: log P(z) = -lambda max|z| and a constant, with every shift of at most 1/h steps in each side.
        epsilon, per_flip = 0.9, 2
        z = np.array(list(itertools.product(range(-6, 7), repeat=sides)))
        log = -epsilon / per_flip * np.abs(z).max(axis=1)
        worst = 0.0
        for shift in itertools.product(range(-per_flip, per_flip + 1), repeat=sides):
            moved = -epsilon / per_flip * np.abs(z - np.array(shift)).max(axis=1)
            worst = max(worst, float(np.abs(log - moved).max()))
        assert worst == pytest.approx(epsilon, rel=1e-12)
