"""A cube's noise in stairs, as it is drawn, released, kept as a fact, and inverted to intervals.

Statistical tests have a false-alarm rate of 1e-7 each; those of `Seeded` have a fixed seed.
"""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from compliance.intervals import reach as reaches
from compliance.intervals.reach import Additive, Size
from compliance.mechanisms.counts import as_fact, size_of
from compliance.mechanisms.cube import CubeMechanism, cube_step, least_size
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, Facts, MechanismAnswer
from compliance.noise import sampling as sampler
from compliance.noise.sampling import Noise, Seeded, System
from compliance.records.people import Records
from fairwall.laws.noise.distributions import Gaussian, Laplace
from fairwall.laws.noise.linf_ball import CubeNoise, cube_scales
from fairwall.laws.noise.quantiles import LEVEL
from tests.support.noise_sources import Asked, Spy

FALSE_ALARM = 1e-7
SEEDED, SYSTEM = Seeded(np.random.default_rng(5)), System()


@pytest.mark.few(1)
@pytest.mark.parametrize(("noise", "sides", "scale"), [(SYSTEM, 2, 1 / 3), (SEEDED, 3, 0.5), (SYSTEM, 3, 0.5)])
def test_draws_on_a_coarse_grid_have_the_discrete_law(noise: Noise, sides: int, scale: float) -> None:
    draws, step, least = 1500, 0.25, 3
    drawn = np.array([noise.cube(np.full(sides, 7.0), scale, step, least) - 7 for _ in range(draws)]) / step
    assert (drawn == np.rint(drawn)).all()
    # P(z) by the mixture: even on every cube.
    m, k = np.arange(13), np.arange(60)
    sizes = least + 4 * k
    weights = np.exp(-k / scale) * (2.0 * sizes + 1) ** sides
    of_one = (m[:, np.newaxis] <= sizes) @ (weights / weights.sum() / (2.0 * sizes + 1) ** sides)
    shells = ((2 * m + 1.0) ** sides - np.where(m, (2 * m - 1.0) ** sides, 0)) * of_one
    seen = np.bincount(np.minimum(np.abs(drawn).max(axis=1).astype(int), 13), minlength=14)
    expected = np.append(shells, 1 - shells.sum()) * draws
    enough = expected > 5
    seen, expected = np.append(seen[enough], seen[~enough].sum()), np.append(expected[enough], expected[~enough].sum())
    assert scipy.stats.chisquare(seen[expected > 0], expected[expected > 0]).pvalue > FALSE_ALARM
    for of in drawn.T:
        signs = int((of > 0).sum()), int((of < 0).sum())
        assert scipy.stats.binomtest(signs[0], sum(signs), 0.5).pvalue > FALSE_ALARM


@pytest.mark.few(1)
@pytest.mark.parametrize(("noise", "sides", "epsilon"), [(SYSTEM, 1, 1.0), (SYSTEM, 3, 5.0), (SEEDED, 2, 3.0)])
def test_draws_on_a_fine_grid_have_the_law_of_their_coordinates(noise: Noise, sides: int, epsilon: float) -> None:
    law, step, draws = CubeNoise(1 / epsilon, sides, epsilon), cube_step(epsilon, 100), 2000
    least = least_size(law, step)
    drawn = np.array([noise.cube(np.full(sides, 0.25), law.scale, step, least) for _ in range(draws)]) - 0.25
    for of in np.abs(drawn).T:
        for level in (0.1, 0.5, 0.9, 0.97):
            within = int((of < law.reach(level)).sum())
            assert scipy.stats.binomtest(within, draws, level).pvalue > FALSE_ALARM


GRIDS = [(1, 1), (4, 3), (4, 4), (2**24, 3 * 2**19), (2**44, 1), (3, 0)]


def test_sizes_are_drawn_with_the_very_odds_that_make_their_law(monkeypatch: pytest.MonkeyPatch) -> None:
    for sides, (apart, least) in itertools.product((1, 2, 3), GRIDS):
        # As `test_exact_loss` has it of all sizes: C(k+d, d) r^k times the coins' odds must be r^k (2T+1)^d but for one
        # constant; and each coin's odds those of a probability.
        constants, bits = set(), random.SystemRandom()
        for k in (0, 1, 2, 7, 1000):
            size, coins = least + k * apart, list[Fraction]()

            def told(of: int, size: int = size, coins: list[Fraction] = coins) -> int:
                coins.append(Fraction(2 * size + 1, of))
                return 0

            monkeypatch.setattr(
                sampler, "geometric", lambda _rate, count, _bits, k=k: np.repeat([k, 0], [1, count - 1])
            )
            monkeypatch.setattr(bits, "randrange", told)
            assert sampler._cube_size(Fraction(3), sides, bits, apart, least) == size
            assert len(coins) == sides
            assert max(coins) <= 1
            weight = math.prod((Fraction(k + j, j) * odds for j, odds in enumerate(coins, start=1)), start=Fraction(1))
            constants.add(weight / (2 * size + 1) ** sides)
        assert len(constants) == 1


def test_a_stair_is_what_one_person_moves_and_costs_one_over_the_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(sampler, "_cube_size", lambda *about: asked.append(about) or 5)
    drawn = System()
    drawn.cube(np.zeros(2), 0.3, 0.125, 3)
    drawn.cube(np.zeros(2), 0.3, 0.125)
    assert asked == [(1 / Fraction(0.3), 2, drawn.bits, 8, 3), (Fraction(0.125) / Fraction(0.3), 2, drawn.bits, 1, 0)]


def asked_for(
    models: int, epsilon: float, facts: Facts = NO_FACTS, seed: int = 1
) -> tuple[list[Asked], MechanismAnswer]:
    spy, generator = Spy(Seeded(np.random.default_rng(seed))), np.random.default_rng(2)
    protected = (np.arange(40) % 5 > 0).astype(np.uint8)
    question = BatchQuestion("sp", generator.random((models, 40)), Records(np.ones(40, np.uint8), protected, ()))
    released = CubeMechanism().release(question, facts, epsilon, 0.0, spy)  # type: ignore[arg-type]
    return spy.asked, released


def test_the_mechanism_draws_stairs_where_they_are_worth_it() -> None:
    bought = {"n0": np.array([8.0, 0.2, 0.0])}
    for epsilon in (0.5, 1.0, 2.0, 5.0, 1e6):
        for models in (1, 2, 3, 4):
            for facts in (NO_FACTS, bought):
                ((asked, _), law) = (
                    asked_for(models, epsilon, facts),
                    cube_scales(models, epsilon, size_known=bool(facts)).law,
                )
                (drawn,) = asked
                assert (drawn.law, drawn.scale) == ("cube", law.scale)
                assert drawn.least == (law.gamma / drawn.step if law.stair else 0)
                assert drawn.step == cube_step(epsilon, 40)
    assert asked_for(1, 2.0)[0][0].least
    assert not asked_for(1, 0.5)[0][0].least
    assert not asked_for(4, 5.0)[0][0].least


@pytest.mark.parametrize(("models", "epsilon"), [(1, 0.5), (25, 2.0)])
def test_where_they_are_not_noise_is_what_it_was(models: int, epsilon: float) -> None:
    (drawn,), released = asked_for(models, epsilon)
    generator = np.random.default_rng(1)
    sides, steps = models + 1, np.rint(drawn.values / drawn.step)
    size = -1
    while size < 0:
        number = generator.negative_binomial(sides + 1, -math.expm1(-drawn.step * epsilon), 1)
        kept = np.prod((number[:, np.newaxis] + 0.5) / (number[:, np.newaxis] + np.arange(1, sides + 1)), axis=1)
        size = int(number[0]) if generator.random(1) < kept else -1
    noisy = (steps + generator.integers(-size, size, sides, endpoint=True)) * drawn.step
    assert released.facts["n0"].tolist() == [np.clip(noisy[0], 1, 39), 1 / epsilon, 2.0 + models]


def test_facts_tell_their_law_and_old_ones_are_read_as_they_were() -> None:
    laws: list[Additive] = [Laplace(0.7), Gaussian(0.7), CubeNoise(0.7, 1), CubeNoise(0.7, 26)]
    laws += [CubeNoise(1 / 3.0, sides, 1 / (1 / 3.0)) for sides in (1, 2, 3)]
    kinds = [0, 1, 2, 27, -2, -3, -4]
    for law, kind in zip(laws, kinds, strict=True):
        fact = as_fact(8.25, law, 40)
        assert fact.tolist() == [8.25, law.scale, kind]
        assert size_of(fact, 1, 40) == Size(8.25, law, whole=False)
    (_, released) = asked_for(2, 3.0)
    assert size_of(released.facts["n0"], 1, 40).law == cube_scales(2, 3.0).law


@pytest.mark.parametrize(("sides", "epsilon"), [(2, 2.0), (3, 7.0)])
def test_q_of_two_coordinates_in_stairs_is_the_quantile_of_draws(sides: int, epsilon: float) -> None:
    # 10^6 draws err by 2.2e-4 of a level; 5 times that.
    law, generator = CubeNoise(0.7, sides, epsilon), np.random.default_rng(3)
    drawn = law.draw_sizes(generator, 10**6) * generator.uniform(-1, 1, (2, 10**6))
    weights = np.array([0.0, 0.3, 1.0, 2.5])
    for shared in (True, False):
        found = reaches._solved(Size(0.0, law, whole=False, shared=shared), law, weights, LEVEL)
        of_size = drawn[1] if shared else law.sample(generator, 10**6)
        for weight, q in zip(weights, found, strict=True):
            held = np.mean(np.abs(drawn[0] + weight * of_size) <= q)
            assert held >= LEVEL + reaches.BEYOND - 1.1e-3
            assert held <= LEVEL + reaches.BEYOND + (1.1e-3 if shared else 4e-3)


@pytest.mark.check
@pytest.mark.parametrize(("epsilon", "later"), [(3.0, True), (5.0, False)])
def test_intervals_hold_where_groups_are_small_and_gaps_large(epsilon: float, later: bool) -> None:
    # 800 answers of one and of two models, each in the worst of places for their intervals.
    n, generator = 40, np.random.default_rng(7)
    for n0 in (2, 20):
        protected = (np.arange(n) >= n0).astype(np.uint8)
        records = Records(np.ones(n, np.uint8), protected, ())
        for models in (1, 2):
            few = generator.random((models, n)) < 0.3
            predictions: NDArray[np.float64] = np.where(protected == 0, 1.0, few.astype(np.float64))
            predictions[-1] = 0.2 + predictions[-1] / 3
            question, held, told = BatchQuestion("sp", predictions, records), 0, 0
            for _ in range(400):
                noise = Seeded(generator)
                facts = CubeMechanism().release(question, NO_FACTS, epsilon, 0.0, noise).facts if later else NO_FACTS
                released = CubeMechanism().release(question, facts, epsilon, 0.0, noise)
                assert released.low is not None
                assert released.high is not None
                inside = (released.low <= question.gaps()) & (question.gaps() <= released.high)
                held, told = held + int(inside[0]), told + 1
            assert scipy.stats.binomtest(held, told, LEVEL, alternative="less").pvalue > FALSE_ALARM
