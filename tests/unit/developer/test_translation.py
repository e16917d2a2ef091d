"""Every metric's answers, said in its own terms and read back, against the definition of the gap in whole fractions."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from compliance.mechanisms.mechanism import BatchQuestion
from compliance.records.metrics import METRICS
from compliance.records.people import Records
from developer.reveal.strategies import STRATEGIES, StrategyInputs
from developer.reveal.strategies.sizes import alone, group_sizes
from developer.reveal.translation import UNIT, Play, plays

READABLE = [name for name in METRICS if name != "ppv"]


def answers(metric: str, y: NDArray[np.uint8], a: NDArray[np.uint8], rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """What the audit service says, without its checks of group sizes."""
    return BatchQuestion(metric, rows, Records(y, a, ())).gaps()


def sp(weights: NDArray[np.float64], a: NDArray[np.uint8]) -> Fraction:
    def mean(group: int) -> Fraction:
        return sum(map(Fraction, weights[a == group].tolist()), Fraction(0)) / int((a == group).sum())

    return mean(1) - mean(0)


def read(
    play: Play, y: NDArray[np.uint8], a: NDArray[np.uint8], weights: NDArray[np.float64], base: NDArray[np.float64]
) -> NDArray[np.float64]:
    inside = a[play.reached]
    reference = answers(play.metric, y, a, play.reference(base))[0] if play.needs_reference else 0.0
    found = answers(play.metric, y, a, play.predictions(weights, base))
    return play.gap(found, weights, int((inside == 0).sum()), int(inside.sum()), float(reference))


def both_in(a: NDArray[np.uint8], people: NDArray[np.bool_]) -> bool:
    return {*a[people].tolist()} == {0, 1}


def world(seed: int, n: int = 24) -> tuple[NDArray[np.uint8], NDArray[np.uint8], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 3 == 0).astype(np.uint8)
    a = np.array([0, 0, 1, 1, 0, 1] + [1] * (n - 6), np.uint8)
    a[6:] = rng.integers(0, 2, n - 6)
    return y, a, rng.random(n)


@pytest.mark.parametrize("metric", READABLE)
@pytest.mark.parametrize("n", [3, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 5))])
def test_every_small_world_is_read(metric: str, n: int) -> None:
    base = np.linspace(0.1, 0.9, n)
    for bits in itertools.product((0, 1), repeat=2 * n):
        y, a = np.array(bits[:n], np.uint8), np.array(bits[n:], np.uint8)
        games = plays(metric, y)
        if not all(both_in(a, play.reached) for play in games):
            continue
        for play in games:
            size = int(play.reached.sum())
            weights = np.vstack(
                [np.eye(size), 1 - np.eye(size), np.full((1, size), 0.25), 2.0 ** -np.arange(size)[None]]
            )
            expected = [sp(row, a[play.reached]) for row in weights]
            found = read(play, y, a, weights, base)
            for value, gap in zip(found, expected, strict=True):
                assert value == pytest.approx(float(abs(gap) if play.absolute else gap), abs=1e-15)
            for person in range(size):
                (answer,) = answers(metric, y, a, play.size_row(alone(size, person), lambda: base))
                told = play.size_gap(float(answer))
                n0, n1 = group_sizes(told, size)
                own = a[play.reached] == a[play.reached][person]
                if play.absolute:  # the sign is lost: the first size found is that of the person's group
                    assert (n0, n1) == (size - own.sum(), own.sum())
                else:
                    assert (n0, n1) == ((a[play.reached] == 0).sum(), (a[play.reached] == 1).sum())


@pytest.mark.parametrize("metric", ["eo", "abs_oad", "eodds_max", "eodds_sum"])
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 2**13, 2**30]))
def test_answers_about_whole_multiples_of_the_unit_are_statistical_parity_gaps_bit_for_bit(
    metric: str, seed: int, coarse: int
) -> None:
    y, a, base = world(seed % 1000)
    for play in plays(metric, y):
        size = int(play.reached.sum())
        rng = np.random.default_rng(seed)
        weights = rng.integers(0, 2**53 // coarse, (5, size), endpoint=True) * (UNIT * coarse)
        inside = a[play.reached]
        direct = answers("abs_sp" if play.absolute else "sp", y[play.reached], inside, weights)
        assert read(play, y, a, weights, base).tolist() == direct.tolist()


@given(st.floats(0, 1))
def test_only_whole_multiples_of_the_unit_survive_being_taken_from_1_twice(w: float) -> None:
    assert (1 - (1 - w) == w) == (w / UNIT == round(w / UNIT))


def test_the_base_models_weights_ask_for_the_base_models_scores() -> None:
    y, _, base = world(3)
    base = np.round(base / UNIT) * UNIT
    for metric in READABLE:
        for play in plays(metric, y):
            predicted = play.predictions(play.base_weights(base)[None], base)
            assert predicted[0, play.reached] == pytest.approx(base[play.reached], abs=UNIT)
    (play,) = plays("oad", y)
    assert np.array_equal(play.base_weights(base), np.where(y == 1, base, 1 - base))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 40), st.integers(1, 45))
def test_a_ratio_tells_the_sum_over_the_disadvantaged_to_a_quarter_of_a_floats_precision(
    seed: int, n0: int, n1: int, digits: int
) -> None:
    rng = np.random.default_rng(seed)
    n = n0 + n1
    a = rng.permutation((np.arange(n) >= n0).astype(np.uint8))
    y = np.zeros(n, np.uint8)
    weights = rng.integers(0, 2**digits, (4, n), endpoint=True) * 2.0**-digits  # their sums are exact
    weights[0, a == 1] = 0
    weights[1] = 0
    (play,) = plays("di", y)
    base = np.zeros(n)
    ratios = answers("di", y, a, play.predictions(weights, base))
    found = play.gap(ratios, weights, n0, n1)
    for row, ratio, gap in zip(weights, ratios, found, strict=True):
        truth = sp(row, a)
        total = sum(map(Fraction, row.tolist()), Fraction(0))
        assert abs(Fraction(float(gap)) - truth) <= 12 * Fraction(UNIT)
        if total and np.isfinite(ratio):
            x = sum(map(Fraction, row[a == 0].tolist()), Fraction(0))
            r = Fraction(float(ratio))
            exact = total * r * n0 / (n1 + r * n0)
            assert abs(exact - x) <= 3 * Fraction(UNIT) * (1 + Fraction(1, 10**9)) * total / 4


def test_a_ratio_needs_sizes() -> None:
    (play,) = plays("di", np.zeros(3, np.uint8))
    assert play.needs_sizes
    with pytest.raises(ValueError, match="sizes"):
        play.gap(np.ones(1), np.ones((1, 3)))


@pytest.mark.parametrize("metric", ["eodds_max", "eodds_sum"])
def test_each_stratum_of_equalized_odds_may_exchange_its_groups(metric: str) -> None:
    y, a, _ = world(5)
    rows = np.random.default_rng(5).random((20, y.size))
    for label in (0, 1):
        exchanged = np.where(y == label, 1 - a, a).astype(np.uint8)
        assert answers(metric, y, a, rows).tolist() == answers(metric, y, exchanged, rows).tolist()


def test_near_the_base_model_the_other_strata_is_subtracted_from_a_sum() -> None:
    for seed in range(20):
        y, a, base = world(seed)
        games = plays("eodds_sum", y, 0.1, base)
        assert all(play.needs_reference for play in games)
        for play in games:
            rng = np.random.default_rng(seed)
            weights = np.clip(base[play.reached] + rng.uniform(-0.1, 0.1, (6, int(play.reached.sum()))), 0, 1)
            assert np.abs(play.predictions(weights, base) - base).max() <= 0.1
            expected = [float(abs(sp(row, a[play.reached]))) for row in weights]
            # 2^-52 by the argument, and what rounds in the two means and in their difference.
            assert read(play, y, a, weights, base) == pytest.approx(expected, abs=2**-52 + 3 * 2**-53)
            row = play.size_row(alone(len(weights[0]), 1), base.copy)
            reference = float(answers("eodds_sum", y, a, play.reference(base))[0])
            told = play.size_gap(float(answers("eodds_sum", y, a, row)[0]), reference)
            own = (a[play.reached] == a[play.reached][1]).sum()
            assert group_sizes(told, len(weights[0]))[1] == own


def test_near_the_base_model_a_maximum_needs_constants() -> None:
    y, a, base = world(1)
    with pytest.raises(ValueError, match="eodds_max: within"):
        plays("eodds_max", y, 0.1, base)
    flat = np.where(y == 1, 0.3, 0.8) + 0.05 * (base - 0.5)
    for play in plays("eodds_max", y, 0.1, flat):
        weights = np.clip(play.base_weights(flat) + 0.1 * (np.arange(play.reached.sum()) % 2), 0, 1)[None]
        assert np.abs(play.predictions(weights, flat) - flat).max() <= 0.1 + UNIT
        (found,) = read(play, y, a, weights, flat)
        assert found == float(answers("abs_sp", y[play.reached], a[play.reached], weights)[0])
    with pytest.raises(ValueError, match="needs the base model"):
        plays("eodds_max", y, 0.1)


def test_decisions_pass_unchanged_where_precision_is_compared() -> None:
    y, a, base = world(2)
    (play,) = plays("ppv", y)
    rows = (np.random.default_rng(2).random((8, y.size)) < 0.5).astype(np.float64)
    assert np.array_equal(play.predictions(rows, base), rows)
    found = answers("ppv", y, a, rows)
    assert play.gap(found, rows).tolist() == found.tolist()


class Translated:
    """What a strategy asks through, in the terms of a metric."""

    def __init__(self, play: Play, y: NDArray[np.uint8], a: NDArray[np.uint8], base: NDArray[np.float64]) -> None:
        self._play, self._y, self._a, self._base = play, y, a, base
        self._sizes: tuple[int, int] | None = None
        self._reference = 0.0

    def size(self, row: NDArray[np.float64]) -> float:
        if self._play.needs_reference:
            self._reference = float(self._ask(self._play.reference(self._base))[0])
        gap = self._play.size_gap(float(self._ask(self._play.size_row(row, lambda: self._base))[0]), self._reference)
        self._sizes = group_sizes(gap, row.size)
        return gap

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        predictions = self._play.predictions(rows, self._base)
        n0, n1 = self._sizes or (None, None)
        return self._play.gap(self._ask(predictions), rows, n0, n1, self._reference)

    def _ask(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return answers(self._play.metric, self._y, self._a, rows)


@pytest.mark.parametrize("metric", ["eo", "abs_fpr", "oad", "eodds_sum", "di"])
def test_strategies_for_statistical_parity_play_every_metric(metric: str) -> None:
    rng = np.random.default_rng(11)
    y = (rng.random(60) < 0.5).astype(np.uint8)
    a = (rng.random(60) < 0.7).astype(np.uint8)
    base = rng.random(60)
    for play in plays(metric, y):
        people, inside = int(play.reached.sum()), a[play.reached]
        reveal = STRATEGIES["absolute" if play.absolute else "random-binary"].play(
            StrategyInputs(
                people=people,
                base=lambda play=play: play.base_weights(base),  # type: ignore[misc]
                prior=lambda people=people: np.ones(people, np.uint8),  # type: ignore[misc]
                auditor=Translated(play, y, a, base),
                rng=rng,
                queries=people,
                perturbation=1.0,
            )
        )
        # Without a sign the larger group is taken for the advantaged one, which it is here.
        assert np.array_equal(reveal.guess, inside)
