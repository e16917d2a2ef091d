"""The advantage and its interval: what it must not miss, and how often it may."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, ttest_1samp

from sim.games.inference.advantage import IntervalEstimate, _independent, measure

Victims = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]


def victims(rng: np.random.Generator, splits: int, each: int, rates: tuple[float, float], within: float) -> Victims:
    """Bits, guesses and splits, with a correlation within splits: their own rates are Beta around the given ones."""
    own = np.tile(np.array(rates)[:, None], (1, splits))
    if within > 0:
        size = (1 - within) / within
        own = np.stack([rng.beta(rate * size, (1 - rate) * size, splits) for rate in rates])
    bits = np.tile(np.repeat([0, 1], each), splits)
    split = np.repeat(np.arange(splits), 2 * each)
    return bits, (rng.random(len(bits)) < own[bits, split]).astype(np.int64), split


def misses(splits: int, rates: tuple[float, float], within: float, repetitions: int = 600) -> int:
    rng = np.random.default_rng(5)
    truth = rates[1] - rates[0]
    found = [measure(*victims(rng, splits, 10, rates, within)).difference for _ in range(repetitions)]
    return sum(not each.low <= truth <= each.high for each in found)


@pytest.mark.few(2)
@pytest.mark.parametrize("splits", [3, 10])
@pytest.mark.parametrize("rates", [(0.5, 0.5), (0.01, 0.99), (0.0, 1.0)])
def test_the_interval_misses_no_more_than_it_says_where_splits_are_alike(
    splits: int, rates: tuple[float, float]
) -> None:
    # Fixed seeds; a sound interval fails one such test with probability below 1e-7.
    assert misses(splits, rates, 0) <= binom.isf(1e-7, 600, 0.05)


def test_the_interval_allows_for_victims_that_share_a_split() -> None:
    within = 0.3
    assert misses(10, (0.5, 0.5), within) <= binom.isf(1e-7, 600, 0.05)
    # The twin that takes all victims for independent fails the same check.
    rng = np.random.default_rng(5)
    alone = 0
    for _ in range(600):
        bits, guesses, _ = victims(rng, 10, 10, (0.5, 0.5), within)
        d = guesses[bits == 1].mean() - guesses[bits == 0].mean()
        low, high = _independent(float(d), np.array([100, 100]), 0.05)
        alone += not low <= 0 <= high
    assert alone > binom.isf(1e-7, 600, 0.05)


@pytest.mark.few(2)
@pytest.mark.parametrize(("n0", "n1", "level"), [(5, 5, 0.05), (7, 13, 0.001), (10, 10, 0.05), (24, 36, 0.05)])
def test_the_interval_for_independent_victims_holds_for_every_pair_of_rates(n0: int, n1: int, level: float) -> None:
    """Exactly: every outcome, weighed by its probability."""
    outcomes = np.array(list(itertools.product(range(n0 + 1), range(n1 + 1))))
    limits = np.array([_independent(y / n1 - x / n0, np.array([n0, n1]), level) for x, y in outcomes])
    grid = (0, 0.001, 0.01, 0.05, 0.2, 0.4, 0.5, 0.7, 0.95, 0.99, 0.999, 1)
    for p0, p1 in itertools.product(grid, grid):
        law = binom.pmf(outcomes[:, 0], n0, p0) * binom.pmf(outcomes[:, 1], n1, p1)
        held = (limits[:, 0] <= p1 - p0 + 1e-12) & (p1 - p0 - 1e-12 <= limits[:, 1])
        assert law[~held].sum() <= level


def test_splits_that_all_agree_still_leave_doubt() -> None:
    bits, split = np.tile([0, 1], 100), np.repeat(np.arange(10), 20)
    found = measure(bits, bits, split, level=0.05, attacks=5)
    assert found.advantage.mean == found.advantage.high == 1
    # 200 of 200 right: the probability p of right guesses has p^200 >= 0.01 / 2.
    assert found.advantage.low == pytest.approx(2 * 0.005 ** (1 / 200) - 1)
    assert found.accuracy == IntervalEstimate(100, pytest.approx(100 * 0.005 ** (1 / 200)), 100)


def test_who_is_always_wrong_knows_everything() -> None:
    bits, split = np.tile([0, 1], 100), np.repeat(np.arange(10), 20)
    right, wrong = measure(bits, bits, split), measure(bits, 1 - bits, split)
    assert wrong.advantage.mean == right.advantage.mean == 1
    assert wrong.advantage.low == pytest.approx(right.advantage.low)
    assert wrong.difference.mean == -1
    assert wrong.accuracy.mean == 0


def test_a_guess_that_is_always_the_same_knows_nothing() -> None:
    for guess in [0, 1]:
        bits, split = np.tile([0, 1, 1], 60), np.repeat(np.arange(10), 18)
        found = measure(bits, np.full(180, guess), split)
        assert found.advantage.mean == found.advantage.low == 0
        assert found.difference.low < 0 < found.difference.high


def test_one_split_says_nothing_about_others() -> None:
    found = measure([0, 1] * 50, [0, 1] * 50, [3] * 100)
    assert (found.difference.low, found.difference.high) == (-1, 1)


def test_with_equal_splits_the_clustered_interval_is_students() -> None:
    rng = np.random.default_rng(2)
    bits, guesses, split = victims(rng, 12, 50, (0.4, 0.6), 0.3)
    own = [guesses[(split == k) & (bits == 1)].mean() - guesses[(split == k) & (bits == 0)].mean() for k in range(12)]
    found = measure(bits, guesses, split)
    limits = ttest_1samp(own, 0).confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == pytest.approx((limits.low, limits.high))


def test_splits_may_lack_a_bit_and_have_any_name() -> None:
    bits, guesses = [0, 0, 1, 1, 0, 1], [0, 1, 1, 1, 0, 0]
    found = measure(bits, guesses, [7, 7, 7, -2, 40, 40])
    assert found.difference.mean == pytest.approx(1 / 3)


@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.floats(1e-6, 0.5))
def test_more_attacks_and_smaller_levels_never_make_an_interval_narrower(seed: int, attacks: int, level: float) -> None:
    data = victims(np.random.default_rng(seed), 6, 4, (0.3, 0.8), 0.1)
    one, several = measure(*data, level=level), measure(*data, level=level, attacks=attacks)
    assert several.difference.low <= one.difference.low <= one.difference.mean
    assert one.difference.mean <= one.difference.high <= several.difference.high
    assert 0 <= several.advantage.low <= several.advantage.mean <= several.advantage.high <= 1


@given(st.integers(0, 2**32 - 1))
def test_swapping_the_bits_or_the_guesses_turns_the_sign(seed: int) -> None:
    bits, guesses, split = victims(np.random.default_rng(seed), 5, 3, (0.3, 0.6), 0.2)
    found = measure(bits, guesses, split)
    for turned in (measure(1 - bits, guesses, split), measure(bits, 1 - guesses, split)):
        assert turned.difference.mean == pytest.approx(-found.difference.mean)
        assert turned.difference.low == pytest.approx(-found.difference.high)
        assert turned.advantage.low == pytest.approx(found.advantage.low)


def test_what_cannot_be_estimated_is_refused() -> None:
    with pytest.raises(ValueError, match="both bits"):
        measure([1, 1], [0, 1], [0, 1])
    with pytest.raises(ValueError, match="a bit, a guess and a split"):
        measure([0, 1], [0, 1], [0])
    with pytest.raises(ValueError, match="level"):
        measure([0, 1], [0, 1], [0, 1], level=0)
