"""The intervals of means and shares: where they may lie, and how often they miss."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sim.report.estimates import (
    FEWEST,
    PERCENT,
    POINTS,
    IntervalEstimate,
    Range,
    estimate,
    estimate_of,
    share,
    share_interval,
    t_interval,
)

# Twenty-one quantiles each, 1% to 99%, of what 200 trials of the scenario demo came to: leakage of two strategies at a
# budget, and what the answers added to the guess without a query.
KNOWN = [63.8, 72.9, 80.0, 85.0] + [100.0] * 17
LEAKAGES = {
    "sensing, exact": KNOWN,
    "sensing, 10": [
        *(36.7, 38.6, 40.3, 42.8, 43.9, 44.3, 45.0, 45.6, 46.1, 47.8, 48.9, 49.4, 50.0, 50.6, 51.7, 52.8, 54.4, 55.6),
        *(56.7, 58.9, 66.1),
    ],
    "best, 1000": [
        *(63.3, 73.3, 76.7, 78.5, 81.1, 83.3, 84.4, 85.0, 86.7, 89.4, 90.6, 91.7, 92.8, 94.3, 95.6, 97.8),
        *[100.0] * 5,
    ],
    "best, 10": [
        *(42.8, 47.1, 50.0, 51.4, 53.9, 55.6, 55.6, 57.4, 58.9, 60.6, 61.1, 61.1, 63.3, 64.9, 65.8, 66.7, 66.7, 69.3),
        *(70.3, 72.2, 77.8),
    ],
}
GAINS = {
    "sensing, exact": [
        *(-8.4, 7.6, 18.3, 23.9, 27.8, 27.8, 33.3, 33.3, 33.3, 38.9, 38.9, 38.9, 38.9, 38.9, 44.4, 44.4, 44.4, 50.0),
        *(50.0, 50.0, 55.6),
    ],
    "best, 100": [
        *(-13.9, -7.9, -4.4, -3.3, -1.1, 1.1, 2.5, 3.5, 5.6, 6.7, 7.8, 8.9, 9.4, 10.6, 11.7, 12.8, 14.4, 16.0, 19.5),
        *(22.8, 27.2),
    ],
}
LAWS = [(law, PERCENT) for law in LEAKAGES.values()] + [(law, POINTS) for law in GAINS.values()]
IDS = [*LEAKAGES, *(f"gain of {name}" for name in GAINS)]


def missed(law: list[float], trials: int, repetitions: int, of: Callable[[np.ndarray], IntervalEstimate]) -> int:
    """Count how often the interval of so many draws misses the law's mean."""
    draws = np.random.default_rng([trials, 3]).choice(law, (repetitions, trials))
    mean = float(np.mean(law))
    found = [of(values) for values in draws]
    return sum(not (one.low or 0) - 1e-9 <= mean <= (one.high or 0) + 1e-9 for one in found)


def by_t(values: np.ndarray) -> IntervalEstimate:
    error = float(np.std(values, ddof=1)) / math.sqrt(len(values))
    return IntervalEstimate(float(values.mean()), *t_interval(float(values.mean()), error, len(values) - 1, 0.05))


def test_an_interval_of_leakages_misses_their_mean_no_more_often_than_the_page_says() -> None:
    for law, within in LAWS:
        # Fixed seeds; an interval that keeps its promise fails one such test with probability below 1e-7.
        promise = 0.06 if within == PERCENT else 0.08
        assert missed(law, 5, 300, lambda values, within=within: estimate(values, within)) <= stats.binom.isf(
            1e-7, 300, promise
        )


@pytest.mark.slow
@pytest.mark.parametrize("trials", [5, 8, 15])
@pytest.mark.parametrize(("law", "within"), LAWS, ids=IDS)
def test_the_promise_is_kept_at_every_small_number_of_trials(law: list[float], within: Range, trials: int) -> None:
    promise = 0.06 if within == PERCENT else 0.08
    assert missed(law, trials, 20_000, lambda values: estimate(values, within)) <= 20_000 * (promise + 0.005)


def test_the_t_interval_is_a_twin_that_fails_the_same_check() -> None:
    assert missed(KNOWN, 5, 300, by_t) > stats.binom.isf(1e-7, 300, 0.06)


@given(st.lists(st.floats(0, 100), min_size=FEWEST, max_size=12))
def test_an_interval_never_leaves_what_is_possible_and_holds_the_mean(values: list[float]) -> None:
    found = estimate(values, PERCENT)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low <= found.mean + 1e-9
    assert found.mean - 1e-9 <= found.high <= 100


def test_fewer_than_five_trials_have_no_interval() -> None:
    for trials in [1, 2, 4]:
        values = [90.0, 50.0, 100.0, 80.0][:trials]
        for found in (estimate(values, PERCENT), estimate(values), share(trials, trials)):
            assert (found.low, found.high, found.sign) == (None, None, 0)
            assert "(" not in str(found)
        assert str(IntervalEstimate(-3.0)) == "−3.0"


def test_trials_that_all_came_to_the_same_allow_for_others_that_did_not_come() -> None:
    unseen = 1 - 0.025 ** (1 / 5)
    always = estimate([100.0] * 5, PERCENT)
    assert (always.low, always.high) == (pytest.approx(100 * (1 - unseen)), 100)
    assert (always.low, always.high) == pytest.approx(tuple(100 * end for end in share_interval(5, 5)))
    # Seven tenths have another last bit when they are averaged.
    middle = estimate([0.7] * 10, (0, 1))
    unseen = 1 - 0.025 ** (1 / 10)
    assert (middle.low, middle.high) == pytest.approx(((1 - unseen) * 0.7, (1 - unseen) * 0.7 + unseen))


def test_in_the_middle_of_its_range_it_is_nearly_the_t_interval() -> None:
    values = np.random.default_rng(1).normal(50, 2, 20)
    found, plain = estimate(values, PERCENT), by_t(values)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high), abs=0.05)
    assert (found.low or 0) < (plain.low or 0) < (plain.high or 0) < (found.high or 0)
    assert estimate(values) == plain
    assert estimate([1.0, 0.0, 0.0, 0.0, 2.0], (0, math.inf)).low == 0


def test_a_difference_may_be_negative_and_says_which_side_it_is_on() -> None:
    below = estimate([-9.0, -10.0, -11.0, -9.5, -10.5], POINTS)
    assert below.sign == -1
    assert estimate([9.0, 10.0, 11.0, 9.5, 10.5], POINTS).sign == 1
    assert estimate([-9.0, 9.0, 1.0, 0.0, -2.0], POINTS).sign == 0
    assert str(below).startswith("−10.0\u00a0(−11.0\u00a0to\u00a0−9.0)")


def test_a_share_has_clopper_and_pearsons() -> None:
    exact = stats.binomtest(7, 9).proportion_ci(0.95, "exact")
    assert share_interval(7, 9) == pytest.approx((exact.low, exact.high))
    assert share(7, 9).text(0, "%") == "78%\u00a0(40–97)"


def test_a_summary_says_as_much_as_its_trials() -> None:
    values = [61.0, 55.5, 70.0, 66.0, 52.0, 58.0]
    assert estimate_of(float(np.mean(values)), float(np.std(values, ddof=1)), 6, PERCENT) == estimate(values, PERCENT)
