"""What the mechanisms cost exactly, the paper's figures, and broken twins that the same arithmetic convicts."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwall.laws.mechanisms.calibration import (
    cauchy_loss,
    conceal_law,
    conceal_loss,
    laplace_law,
    laplace_loss,
    printed_conceal_scale,
    printed_laplace_scale,
)
from fairwall.laws.metrics.sensitivity import global_sensitivity, smooth_sensitivity
from fairwall.laws.noise.distributions import Cauchy, Laplace

METRICS = ["sp", "abs_sp"]  # eo and abs_eo share their laws: only the stratum differs
ROUNDING = 1 + 1e-12


@pytest.mark.parametrize(("metric", "queries", "epsilon"), [("sp", 1, 10.0), ("abs_sp", 25, 0.1)])
def test_both_mechanisms_keep_their_promise(metric: str, queries: int, epsilon: float) -> None:
    conceal, laplace = [], []
    for n in (*range(4, 13), 31, 60):
        for n0 in range(1, n):
            conceal.append(conceal_loss(metric, n0, n - n0, queries, epsilon) / epsilon)
            laplace.append(laplace_loss(metric, n0, n - n0, queries, epsilon) / epsilon)
    assert max(conceal) <= math.sqrt(2) / 6 * ROUNDING  # proved beside the code: about 0.2357
    assert min(conceal) > 0
    # Laplace spends all of it, where the smaller group has one or two people.
    assert max(laplace) == pytest.approx(1, rel=1e-12)


def test_conceal_comes_close_to_its_bound() -> None:
    losses = [conceal_loss("sp", n0, 1000 - n0, 1, 0.1) / 0.1 for n0 in range(1, 500)]
    assert max(losses) == pytest.approx(math.sqrt(2) / 6, rel=0.02)


@given(
    n0=st.integers(1, 400),
    n1=st.integers(2, 400),
    queries=st.integers(1, 500),
    epsilon=st.floats(1e-4, 1e4),
    metric=st.sampled_from(METRICS),
)
def test_conceal_keeps_its_promise_anywhere(n0: int, n1: int, queries: int, epsilon: float, metric: str) -> None:
    assert 0 < conceal_loss(metric, n0, n1, queries, epsilon) <= math.sqrt(2) / 6 * epsilon * (1 + 1e-9)


def test_cauchy_loss_is_the_largest_log_ratio() -> None:
    for shift, scale, other in ((0.3, 2.0, 0.5), (0.0, 3.0, 1.0), (4.0, 0.1, 0.2)):
        # tan maps an even grid onto the whole line, out to 1e7.
        x = np.tan(np.linspace(-math.pi / 2 + 1e-7, math.pi / 2 - 1e-7, 200_001))
        ratio = Cauchy(scale).log_density(x) - Cauchy(other).log_density(x - shift)
        for direction in (ratio, -ratio):
            assert direction.max() == pytest.approx(cauchy_loss(shift, scale, other), abs=1e-6)
        assert cauchy_loss(shift, scale, other) == pytest.approx(
            math.acosh(1 + (shift**2 + (scale - other) ** 2) / (2 * scale * other))
        )


def test_cauchy_loss_keeps_its_digits_where_it_is_small() -> None:
    assert cauchy_loss(1e-12, 1.0, 1.0) == pytest.approx(1e-12, rel=1e-12, abs=0)


def test_cauchy_loss_needs_noise() -> None:
    for scale, other in ((0.0, 1.0), (1.0, 0.0), (math.nan, 1.0)):
        with pytest.raises(ValueError, match="scales"):
            cauchy_loss(1.0, scale, other)


# --- calibrations


def test_laws_are_the_formulas() -> None:
    assert laplace_law("sp", 100, 25, 5.0) == Laplace(25 * (1 / 2 + 1 / 99) / 5)
    assert laplace_law("abs_sp", 100, 25, 5.0).scale == pytest.approx(25 * 100 / 198 / 5)
    smooth = smooth_sensitivity("abs_eo", 10, 90, 5 / (6 * 25))
    assert conceal_law("abs_eo", 10, 90, 25, 5.0).scale == pytest.approx(6 * 25 * smooth / 5)


def test_conceal_is_the_paper_where_the_paper_is_right() -> None:
    # At the larger epsilon the groups that are there decide, at the smaller one the smallest groups that could be.
    for n0, n1 in itertools.product((2, 3, 10, 50), (50, 90, 900)):
        for epsilon in (5.0, 1000.0):
            printed = printed_conceal_scale(n0, n1, 25, epsilon)
            assert conceal_law("sp", n0, n1, 25, epsilon).scale == pytest.approx(printed)
        assert laplace_law("sp", n0 + n1, 25, 5.0).scale == pytest.approx(printed_laplace_scale(n0 + n1, 25, 5.0))


@pytest.mark.parametrize(
    ("n", "n0", "queries", "epsilon", "scale"),
    [
        (100, 10, 25, 5.0, 11.7),
        (1000, 104, 300, 100.0, 0.193),
    ],
)
def test_median_noise_of_the_printed_algorithm(n: int, n0: int, queries: int, epsilon: float, scale: float) -> None:
    printed = printed_conceal_scale(n0, n - n0, queries, epsilon)
    assert float(f"{printed:.3g}") == scale
    assert Cauchy(printed).median_abs() == printed


def test_no_limit_on_epsilon_is_no_noise_and_unlimited_loss() -> None:
    assert laplace_law("sp", 100, 25, math.inf) == Laplace(0.0)
    assert conceal_law("sp", 10, 90, 25, math.inf) == Cauchy(0.0)
    assert printed_conceal_scale(10, 90, 25, math.inf) == printed_laplace_scale(100, 25, math.inf) == 0
    assert laplace_loss("sp", 10, 90, 25, math.inf) == conceal_loss("sp", 10, 90, 25, math.inf) == math.inf


def test_two_people_have_no_neighbours_and_nothing_is_promised() -> None:
    assert laplace_law("sp", 2, 25, 1.0).scale == conceal_law("sp", 1, 1, 25, 1.0).scale == 0
    assert laplace_loss("sp", 1, 1, 25, 1.0) == conceal_loss("sp", 1, 1, 25, 1.0) == 0


# --- broken twins: the paper's calibrations where they fail, against the exact loss


def test_twin_half_for_the_absolute_gap_overspends() -> None:
    queries, epsilon = 25, 5.0
    broken = Laplace(queries / 2 / epsilon)
    # |SP| moves from 0 to 2/3 in every query, see test_laws_sensitivity.
    assert queries * (2 / 3) / broken.scale == pytest.approx(4 / 3 * epsilon)
    assert laplace_law("abs_sp", 4, queries, epsilon).scale == pytest.approx(4 / 3 * broken.scale)


def test_twin_equal_opportunity_with_everybody_counted_overspends() -> None:
    queries, epsilon = 25, 5.0
    broken = printed_laplace_scale(4, queries, epsilon)
    # EO moves by 1 among the three people with y = 1.
    assert queries * 1 / broken == pytest.approx(6 / 5 * epsilon)
    assert laplace_law("eo", 3, queries, epsilon).scale == pytest.approx(6 / 5 * broken)


def test_twin_printed_conceal_overspends_where_one_person_stands_alone() -> None:
    queries, epsilon = 25, 5.0
    alone, pair = (printed_conceal_scale(n0, 100 - n0, queries, epsilon) for n0 in (1, 2))
    # Between one and two people the gap moves by g(2).
    loss = queries * cauchy_loss(global_sensitivity("sp", 100), alone, pair)
    assert loss == pytest.approx(17.1, abs=0.05)
    assert conceal_loss("sp", 1, 99, queries, epsilon) < epsilon


# --- arguments

BATCHES: list[Callable[[float, float], object]] = [
    lambda queries, epsilon: laplace_law("sp", 9, queries, epsilon),  # type: ignore[arg-type]
    lambda queries, epsilon: conceal_law("sp", 4, 5, queries, epsilon),  # type: ignore[arg-type]
    lambda queries, epsilon: laplace_loss("sp", 4, 5, queries, epsilon),  # type: ignore[arg-type]
    lambda queries, epsilon: conceal_loss("sp", 4, 5, queries, epsilon),  # type: ignore[arg-type]
    lambda queries, epsilon: printed_laplace_scale(9, queries, epsilon),  # type: ignore[arg-type]
    lambda queries, epsilon: printed_conceal_scale(4, 5, queries, epsilon),  # type: ignore[arg-type]
]


def test_arguments_out_of_range_are_refused() -> None:
    for function in BATCHES:
        for queries in (0, -1, 1.5, math.nan):
            with pytest.raises(ValueError, match="queries must be"):
                function(queries, 1.0)
        for epsilon in (0.0, -1.0, math.nan):
            with pytest.raises(ValueError, match="epsilon must be above 0"):
                function(1, epsilon)
    for of_groups in (conceal_law, conceal_loss, laplace_loss):
        for n0, n1 in ((0, 5), (5, 0)):
            with pytest.raises(ValueError, match="at least 1"):
                of_groups("sp", n0, n1, 1, 1.0)
    with pytest.raises(ValueError, match="n must be"):
        printed_laplace_scale(1, 1, 1.0)
