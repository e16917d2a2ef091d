"""Which rows a step looks at."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from fairwall.learning.batches import (
    OVERFLOW,
    Poisson,
    PoissonStrata,
    Shuffled,
    Stream,
    apportion,
    shuffled,
    stratified,
)


def test_every_row_is_seen_once_before_any_is_seen_again() -> None:
    rows = np.arange(100, 137)
    drawn, present = Stream(shuffled(rows, 10), np.random.default_rng(0)).take(37)
    assert drawn.shape == (37, 10)
    assert present.all()
    for seen in drawn.ravel().reshape(10, 37):
        assert sorted(seen) == sorted(rows)


def test_blocks_of_any_length_are_one_stream() -> None:
    """Nothing is lost between blocks: the rows' first round ends wherever it must."""
    stream = Stream(shuffled(np.arange(40), 8), np.random.default_rng(1))
    drawn = np.concatenate([stream.take(steps)[0] for steps in (1, 2, 1, 1)]).ravel()
    assert sorted(drawn) == list(range(40))


def test_every_cell_is_in_every_batch_as_often_as_in_the_rows() -> None:
    rng = np.random.default_rng(2)
    cells = rng.choice(4, 1000, p=[0.6, 0.3, 0.08, 0.02])
    rows = rng.permutation(5000)[:1000]
    of = dict(zip(rows, cells, strict=True))
    drawn, _ = Stream(stratified(rows, 100, cells), rng).take(5)
    for batch in drawn:
        counts = np.bincount([of[row] for row in batch], minlength=4)
        assert counts.sum() == 100
        assert (counts >= 1).all()
        assert np.abs(counts - 100 * np.bincount(cells) / 1000).max() < 1.5


def test_a_small_batch_is_widened_to_hold_every_cell() -> None:
    assert stratified(np.arange(8), 2, np.arange(8) % 4).width == 4


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=8), st.integers(0, 300))
def test_seats_are_shared_out_in_full(counts: list[int], spare: int) -> None:
    seats = apportion(counts, len(counts) + spare)
    assert seats.sum() == len(counts) + spare
    assert (seats >= 1).all()
    # More rows never get fewer seats.
    order = np.argsort(counts, kind="stable")
    assert all(seats[a] <= seats[b] or counts[a] == counts[b] for a, b in pairwise(order))


def test_too_few_seats_are_refused() -> None:
    with pytest.raises(ValueError, match="3 strata do not fit into a batch of 2"):
        apportion([1, 1, 1], 2)


def test_a_poisson_batch_holds_each_row_once_at_most_and_at_its_rate() -> None:
    rows = np.arange(50, 250)
    plan = Poisson(rows, 0.1, 4000)
    drawn, present = Stream(plan, np.random.default_rng(3)).take(4000)
    assert drawn.shape == (4000, plan.width)
    assert 20 < plan.width < 90
    for batch, mask in zip(drawn[:200], present[:200], strict=True):
        held = batch[mask == 1]
        assert len(set(held)) == len(held)
    counts = np.bincount(drawn[present == 1], minlength=250)[50:]
    # Each count is binomial, (4000, 0.1), standard deviation 19; 6 of them, 200 rows: false alarm below 1e-6.
    assert np.abs(counts - 400).max() < 6 * 19
    sizes = present.sum(1)
    assert abs(sizes.var() - 18) < 6 * 18 * np.sqrt(2 / 4000)


def test_what_rows_a_crowded_batch_loses_is_within_its_part_of_delta() -> None:
    """Both neighbours may have such a batch, and the one's chance counts e^epsilon times."""
    for rows, rate, steps in ((35_000, 0.0073, 1000), (200, 0.1, 4000), (100, 0.5, 1)):
        crowded = steps * binom.sf(Poisson(np.arange(rows), rate, steps).width, rows, rate)
        for epsilon in (0.1, 1.0, 8.0, 25.0):
            assert (1 + math.exp(epsilon)) * crowded <= OVERFLOW


def test_a_rate_of_1_is_all_rows() -> None:
    drawn, present = Stream(Poisson(np.arange(5), 1.0, 3), np.random.default_rng(0)).take(3)
    assert present.all()
    assert (np.sort(drawn, axis=1) == np.arange(5)).all()


def test_every_stratum_of_a_poisson_batch_has_its_own_rate() -> None:
    parts = (Poisson(np.arange(40), 0.5, 2000), Poisson(np.arange(40, 240), 0.1, 2000))
    plan = PoissonStrata(parts, 24.0)
    drawn, present = Stream(plan, np.random.default_rng(5)).take(2000)
    assert drawn.shape == (2000, plan.width)
    assert plan.width == parts[0].width + parts[1].width
    for batch, mask in zip(drawn[:200], present[:200], strict=True):
        held = batch[mask == 1]
        assert len(set(held)) == len(held)
    counts = np.bincount(drawn[present == 1], minlength=240)
    # Binomial counts, (2000, 0.5) and (2000, 0.1), standard deviations 23 and 14; 6 of them, 240 rows.
    assert np.abs(counts[:40] - 1000).max() < 6 * 23
    assert np.abs(counts[40:] - 200).max() < 6 * 14


def test_plans_without_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="strata"):
        Shuffled(())
    with pytest.raises(ValueError, match="strata"):
        shuffled(np.arange(0), 3)
    with pytest.raises(ValueError, match="Poisson"):
        Poisson(np.arange(0), 0.5, 1)
    with pytest.raises(ValueError, match="strata"):
        PoissonStrata((), 1.0)
