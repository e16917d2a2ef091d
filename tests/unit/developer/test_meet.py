import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from developer.reveal.decode.meet_in_the_middle import (
    SUMS_MAX,
    _jumping,
    _matches,
    _tolerance,
    is_listable,
    meet,
    members,
    subset_sums,
)
from developer.reveal.strategies import StrategyInputs
from developer.reveal.strategies import meet as strategy
from developer.reveal.strategies.strategy import PublicTerms
from fairwall.laws.metrics.values import sums_over


def answer(scores: NDArray[np.float64], a: NDArray[np.uint8]) -> float:
    """Compute the gap as the audit service does."""
    one, zero = (float(sums_over(a == group, scores[None])[0]) for group in (1, 0))
    return one / int((a == 1).sum()) - zero / int((a == 0).sum())


def population(n: int, n0: int, seed: int) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Draw the scores of an ordinary logistic regression, most of them small, and attributes."""
    rng = np.random.default_rng(seed)
    a = np.ones(n, np.uint8)
    a[rng.permutation(n)[:n0]] = 0
    return 1 / (1 + np.exp(-rng.normal(-1.5, 2, n))), a


def test_everybody_is_found_whatever_the_attributes() -> None:
    for n in range(2, 9):
        scores, _ = population(n, 1, n)
        for bits in itertools.product((0, 1), repeat=n):
            a = np.array(bits, np.uint8)
            if 0 < a.sum() < n:
                found = meet(scores, answer(scores, a), int((a == 0).sum()))
                assert found is not None
                assert (found == a).all()
                assert found.dtype == np.uint8


def test_larger_groups_are_found() -> None:
    for n, n0, seed in ((61, 7, 0), (60, 54, 1), (200, 4, 2)):
        scores, a = population(n, n0, seed)
        found = meet(scores, answer(scores, a), n0)
        assert found is not None
        assert (found == a).all()


@pytest.mark.slow
def test_a_hundred_are_found_from_one_answer() -> None:
    right = 0
    for seed in range(5):
        scores, a = population(100, 10, seed)
        found = meet(scores, answer(scores, a), 10)
        right += found is not None and bool((found == a).all())
    assert right >= 4


def test_the_size_is_found_too() -> None:
    scores, a = population(30, 5, 0)
    found = [meet(scores, answer(scores, a), n0) for n0 in range(1, 9)]
    assert [group is not None for group in found] == [n0 == 5 for n0 in range(1, 9)]


@pytest.mark.parametrize("off", [1e-9, -1e300])
def test_an_answer_that_no_group_has_finds_nobody(off: float) -> None:
    scores, a = population(30, 5, 0)
    assert meet(scores, answer(scores, a) + off, 5) is None


def test_what_is_found_replays_even_where_scores_are_alike() -> None:
    scores, a = np.repeat([0.25, 0.5, 0.75], 8), np.tile([0, 1, 1], 8).astype(np.uint8)
    found = meet(scores, answer(scores, a), 8)
    assert found is not None
    assert (found == 0).sum() == 8
    assert answer(scores, found) == answer(scores, a)


@pytest.mark.few(1)
@pytest.mark.parametrize("off", [0, 1e-16])
def test_scores_all_alike_end_soon(off: float) -> None:
    # Every group is near: far too many to look at.
    scores, a = np.full(40, 1 / 3), np.ones(40, np.uint8)
    a[:6] = 0
    found = meet(scores, answer(scores, a) + off, 6)
    assert found is None if off else (found == 0).sum() == 6


@pytest.mark.parametrize(("n", "n0"), [(100, 13), (1000, 6)])
def test_searches_too_large_are_refused(n: int, n0: int) -> None:
    with pytest.raises(ValueError, match="sums"):
        meet(np.zeros(n), 0.0, n0)


@pytest.mark.parametrize("n0", [0, 10])
def test_both_groups_hold_somebody(n0: int) -> None:
    with pytest.raises(ValueError, match="n0"):
        meet(np.zeros(10), 0.0, n0)


def test_searches_that_fit() -> None:
    for n, n0 in ((100, 88), (2, 1), (1000, 4)):
        assert is_listable(n, n0)
        assert math.comb((n + 1) // 2, (min(n0, n - n0) + 1) // 2) <= SUMS_MAX


@given(n=st.integers(0, 9), seed=st.integers(0, 99))
def test_subset_sums_lists_every_subset_where_members_says(n: int, seed: int) -> None:
    # Powers of two: a sum says which they were.
    values = np.random.default_rng(seed).permutation(2.0 ** np.arange(n))
    for size in range(n + 1):
        sums = subset_sums(values, size)
        assert len(set(sums)) == sums.size == math.comb(n, size)
        assert [sum(values[members(position, size)]) for position in range(sums.size)] == list(sums)


def test_every_cut_is_tried() -> None:
    for count in range(1, 60):
        assert sorted(_jumping(count)) == list(range(count))


@given(bits=st.lists(st.booleans(), min_size=2, max_size=40))
def test_some_cut_splits_the_group_evenly(bits: list[bool]) -> None:
    circle = np.array(bits + [False] * (len(bits) % 2))
    width = circle.size // 2
    counts = [int(np.roll(circle, -t)[:width].sum()) for t in range(width + int(circle.sum()) % 2)]
    assert int(circle.sum()) // 2 in counts


def test_the_tolerance_covers_the_rounding_of_the_metric() -> None:
    for n in (5, 129, 1000):
        from fractions import Fraction

        worst = 0.0
        for seed in range(20):
            n0 = 1 + seed * (n - 2) // 19
            scores, a = population(n, n0, seed)
            c = 1 / n0 + 1 / (n - n0)
            x = (math.fsum(scores) / (n - n0) - answer(scores, a)) / c
            true = sum((Fraction(score) for score in scores[a == 0].tolist()), Fraction(0))
            worst = max(worst, abs(float(Fraction(x) - true)) / _tolerance(n, n0, c, max(x, math.fsum(scores) - x)))
        assert worst < 1


def test_matches_are_all_pairs_within_the_tolerance() -> None:
    scores = np.round(np.random.default_rng(0).random(14), 1)  # many ties
    left, right = np.arange(7), np.arange(7, 14)
    for target, tolerance in ((2.3, 1e-12), (2.3, 0.1001), (0.0, 1e-12), (50.0, 1.0)):
        found = sorted(
            tuple(sorted(group.tolist())) for group in _matches(scores, left, 2, right, 3, target, tolerance)
        )
        wanted = sorted(
            i + j
            for i in itertools.combinations(range(7), 2)
            for j in itertools.combinations(range(7, 14), 3)
            if abs(scores[list(i + j)].sum() - target) <= tolerance
        )
        assert found == wanted


class OneAnswer:
    """Answer as the audit service does, with something added, and keep count."""

    def __init__(self, a: NDArray[np.uint8], off: float = 0) -> None:
        self.a, self.off, self.asked = a, off, 0

    def size(self, row: NDArray[np.float64]) -> float:
        self.asked += 1
        return answer(row, self.a)

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        self.asked += len(rows)
        return np.array([answer(row, self.a) + self.off for row in rows])


def hand(scores: NDArray[np.float64], auditor: OneAnswer, terms: PublicTerms) -> StrategyInputs:
    prior = np.arange(scores.size) % 2
    return StrategyInputs(
        scores.size, lambda: scores, lambda: prior.astype(np.uint8), auditor, np.random.default_rng(0), 1, terms=terms
    )


def test_the_strategy_reveals_everybody_by_one_question_about_h0() -> None:
    scores, a = population(60, 6, 0)
    auditor = OneAnswer(a)
    reveal = strategy.play(hand(scores, auditor, PublicTerms(n0=6)))
    assert (reveal.guess == a).all()
    assert reveal.targeted.all()
    assert auditor.asked == 1


def test_without_an_exact_answer_the_prior_guess_stands() -> None:
    for off, terms in (
        (1e-6, PublicTerms(n0=6)),
        (0, PublicTerms(n0=6, epsilon=1.0)),
        (0, PublicTerms(n0=6, precision=3)),
    ):
        scores, a = population(60, 6, 0)
        reveal = strategy.play(hand(scores, OneAnswer(a, off), terms))
        assert (reveal.guess == np.arange(60) % 2).all()


def test_a_size_that_is_not_public_takes_one_question_more() -> None:
    scores, a = population(60, 6, 0)
    auditor = OneAnswer(a)
    assert (strategy.play(hand(scores, auditor, PublicTerms())).guess == a).all()
    assert auditor.asked == 2


def test_where_too_many_are_to_be_searched_for_the_prior_guess_stands() -> None:
    scores, a = population(1000, 104, 0)
    assert (strategy.play(hand(scores, OneAnswer(a), PublicTerms(n0=104))).guess == np.arange(1000) % 2).all()
