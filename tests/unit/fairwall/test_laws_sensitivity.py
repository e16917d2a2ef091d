"""The sensitivities against every neighbour of every small data set, and the paper's statements that do not hold."""

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from fairwall.laws.metrics.sensitivity import (
    flip_sensitivity,
    global_sensitivity,
    local_sensitivity,
    smooth_sensitivity,
)

METRICS = ["sp", "abs_sp", "eo", "abs_eo", "fpr", "abs_fpr", "oad", "abs_oad"]
BETAS = [0.0, 1e-3, 0.1, 3.0]


def weights(attributes: NDArray[np.int64]) -> NDArray[np.float64]:
    """The vector w for which the gap is w @ h."""
    return np.where(attributes == 1, 1 / (attributes == 1).sum(), -1 / (attributes == 0).sum())


def neighbours(attributes: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for person in range(len(attributes)):
        flipped = attributes.copy()
        flipped[person] ^= 1
        if 0 < flipped.sum() < len(flipped):
            yield flipped


def people(n0: int, n1: int) -> NDArray[np.int64]:
    return np.array([0] * n0 + [1] * n1)


def largest_rise_of_absolute_gap(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    """max over h in [0, 1]^n of |after @ h| - |before @ h|, by linear programming over (h, t), t >= |before @ h|."""
    n = len(before)
    bounds = [(0.0, 1.0)] * n + [(0.0, None)]
    above = np.array([[*before, -1.0], [*-before, -1.0]])
    rises = []
    for sign in (1, -1):
        solution = linprog([*(-sign * after), 1.0], A_ub=above, b_ub=[0.0, 0.0], bounds=bounds, method="highs")
        assert solution.status == 0
        rises.append(-solution.fun)
    return max(rises)


def test_signed_sensitivity_is_the_worst_case_over_all_neighbours() -> None:
    for n in (2, 3, 6):
        vertices = np.array(list(itertools.product((0, 1), repeat=n)))
        worst_anywhere = 0.0
        for attributes in map(np.array, itertools.product((0, 1), repeat=n)):
            n1 = int(attributes.sum())
            if not 0 < n1 < n:
                continue
            # The change is linear in h, so the vertices of the cube hold the worst case.
            worst = max(
                (np.abs(vertices @ (weights(other) - weights(attributes))).max() for other in neighbours(attributes)),
                default=0.0,
            )
            assert local_sensitivity("sp", n - n1, n1) == pytest.approx(worst, abs=1e-12)
            worst_anywhere = max(worst_anywhere, worst)
        assert global_sensitivity("sp", n) == pytest.approx(worst_anywhere, abs=1e-12)


def test_absolute_sensitivity_is_the_worst_case_over_all_neighbours() -> None:
    for n in (2, 3, 6):
        # Renaming people changes nothing: one A for each count, one flip out of each group.
        worst_anywhere = 0.0
        for n0 in range(1, n):
            attributes = people(n0, n - n0)
            worst = 0.0
            for person in (0, n - 1):
                other = attributes.copy()
                other[person] ^= 1
                if not 0 < other.sum() < n:
                    continue
                here, there = weights(attributes), weights(other)
                up, down = largest_rise_of_absolute_gap(here, there), largest_rise_of_absolute_gap(there, here)
                leaving = n0 if attributes[person] == 0 else n - n0
                assert flip_sensitivity("abs_sp", n, leaving) == pytest.approx(up, abs=1e-9)
                assert flip_sensitivity("abs_sp", n, leaving) == pytest.approx(down, abs=1e-9)
                worst = max(worst, up, down)
            assert local_sensitivity("abs_sp", n0, n - n0) == pytest.approx(worst, abs=1e-9)
            worst_anywhere = max(worst_anywhere, worst)
        assert global_sensitivity("abs_sp", n) == pytest.approx(worst_anywhere, abs=1e-9)


def test_absolute_sensitivity_in_a_larger_stratum() -> None:
    for n0, n1 in ((1, 24), (3, 22), (12, 13)):
        leaving = max(n0, 2)
        there = weights(people(leaving, n0 + n1 - leaving))
        here = weights(people(leaving - 1, n0 + n1 - leaving + 1))
        assert (np.sign(here) != np.sign(there)).sum() == 1
        rises = [largest_rise_of_absolute_gap(here, there), largest_rise_of_absolute_gap(there, here)]
        assert local_sensitivity("abs_sp", n0, n1) == pytest.approx(max(rises), abs=1e-9)


def test_smooth_sensitivity_is_its_definition() -> None:
    for metric in METRICS:
        for beta, n in itertools.product(BETAS, (2, 3, 4, 9, 30)):
            local = np.array([local_sensitivity(metric, n0, n - n0) for n0 in range(1, n)])
            # |n0 - n0'| flips lead from one count to another, and none less does.
            steps = np.abs(np.subtract.outer(np.arange(1, n), np.arange(1, n)))
            definition = (np.exp(-beta * steps) * local).max(axis=1)
            smooth = np.array([smooth_sensitivity(metric, n0, n - n0, beta) for n0 in range(1, n)])
            np.testing.assert_allclose(smooth, definition, rtol=1e-12)
            assert (smooth >= local).all()
            assert (smooth <= global_sensitivity(metric, n) * (1 + 1e-12)).all()
            assert (smooth[1:] <= math.exp(beta) * smooth[:-1] * (1 + 1e-12)).all()
            assert (smooth[:-1] <= math.exp(beta) * smooth[1:] * (1 + 1e-12)).all()
            # Naming the groups the other way round changes nothing.
            np.testing.assert_array_equal(smooth, smooth[::-1])


def test_formulas_of_the_table() -> None:
    n = 100
    for metric in METRICS:
        factor = n / (n + 1) if metric.startswith("abs") else 1.0
        assert global_sensitivity(metric, n) == pytest.approx(factor * (1 / 2 + 1 / (n - 1)))
        assert local_sensitivity(metric, 10, 90) == pytest.approx(factor * (1 / 10 + 1 / 91))
        assert local_sensitivity(metric, 50, 50) == pytest.approx(factor * (1 / 50 + 1 / 51))
        assert local_sensitivity(metric, 1, 99) == local_sensitivity(metric, 2, 98) == global_sensitivity(metric, n)


def test_absolute_global_sensitivity_in_closed_form() -> None:
    assert global_sensitivity("abs_sp", 31) == pytest.approx(31 / 60)


def test_fewer_than_three_people_have_no_neighbours() -> None:
    for metric in METRICS:
        assert [global_sensitivity(metric, n) for n in range(3)] == [0, 0, 0]
        assert local_sensitivity(metric, 1, 1) == smooth_sensitivity(metric, 1, 1, 0.1) == 0
        assert local_sensitivity(metric, 1, 2) > 0


# --- what the paper prints, and where it fails


def gap(attributes: list[int], predictions: list[float]) -> float:
    return float(weights(np.array(attributes)) @ np.array(predictions))


def test_theorem_6_one_half_is_too_small_for_the_absolute_gap() -> None:
    h = [1.0, 0.0, 1.0, 0.0]
    change = abs(gap([0, 1, 1, 1], h)) - abs(gap([0, 0, 1, 1], h))
    assert change == pytest.approx(2 / 3)
    assert change > 1 / 2
    assert change == pytest.approx(global_sensitivity("abs_sp", 4))


def test_equal_opportunity_moves_by_more_than_all_people_would_allow() -> None:
    # Y = (1, 1, 1, 0), A = (0, 1, 1, 1), h = (1, 1, 0, .): the stratum is the first three, the third person flips.
    h = [1.0, 1.0, 0.0]
    before, after = gap([0, 1, 1], h), gap([0, 1, 0], h)
    assert (before, after) == (pytest.approx(-1 / 2), pytest.approx(1 / 2))
    assert global_sensitivity("sp", 4) == pytest.approx(5 / 6)
    assert global_sensitivity("eo", 3) == pytest.approx(after - before)


def printed_smooth(n0: int, n1: int, beta: float) -> float:
    """Theorem 7's S, per query."""
    return max(1 / (n1 + 1) + 1 / n0, math.exp(-beta * (n0 - 2)) * (1 / (n0 + n1 - 1) + 1 / 2))


def test_theorem_7_is_not_smooth_between_one_and_two_people() -> None:
    beta = 5 / (6 * 25)
    assert printed_smooth(1, 99, beta) / printed_smooth(2, 98, beta) > 1.9 > math.exp(beta)
    assert smooth_sensitivity("sp", 1, 99, beta) == smooth_sensitivity("sp", 2, 98, beta)


def test_theorem_7_needs_the_minority() -> None:
    beta = 5 / (6 * 25)
    assert printed_smooth(98, 2, beta) == pytest.approx(0.3435, abs=1e-4)
    assert smooth_sensitivity("sp", 98, 2, beta) == pytest.approx(0.5101, abs=1e-4)


def test_theorem_7_is_right_elsewhere() -> None:
    for n0 in range(2, 51):
        assert printed_smooth(n0, 100 - n0, 0.05) == pytest.approx(smooth_sensitivity("sp", n0, 100 - n0, 0.05))


def test_appendix_a6_is_too_small_near_balance() -> None:
    n0, k = 50, 0
    assert local_sensitivity("abs_sp", n0, 50) / (1 / (n0 - k)) == pytest.approx(1.96, abs=0.01)


# --- arguments


@pytest.mark.parametrize(
    "function", [lambda *c: local_sensitivity("sp", *c), lambda *c: smooth_sensitivity("sp", *c, 0.1)]
)
def test_counts_are_refused_without_telling_them(function: Callable[..., float]) -> None:
    for counts in ((0, 5), (5, 0), (-1, 5), (2.5, 5), (math.nan, 5)):
        with pytest.raises(ValueError, match=r"^each group must have a whole number of people, at least 1$"):
            function(*counts)


def test_arguments_out_of_range_are_refused() -> None:
    for n in (-1, 2.5, math.nan):
        with pytest.raises(ValueError, match="n must be"):
            global_sensitivity("sp", n)  # type: ignore[arg-type]
    for leaving in (0, 1, 5):
        with pytest.raises(ValueError, match="non-empty"):
            flip_sensitivity("sp", 5, leaving)
    for beta in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="beta"):
            smooth_sensitivity("sp", 2, 3, beta)


def test_unknown_metric_is_refused_everywhere() -> None:
    calls: list[Callable[[], float]] = [
        lambda: flip_sensitivity("x", 5, 2),
        lambda: local_sensitivity("x", 1, 1),
        lambda: global_sensitivity("x", 2),
        lambda: smooth_sensitivity("x", 1, 1, 0.1),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="unknown metric 'x'"):
            call()


def test_numpy_counts_are_welcome() -> None:
    assert local_sensitivity("sp", np.int64(3), np.int64(9)) == local_sensitivity("sp", 3, 9)  # type: ignore[arg-type]
