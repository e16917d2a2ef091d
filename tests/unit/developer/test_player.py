"""The guess that the developer makes without asking anything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from developer.player import no_query_guess

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_the_half_with_the_lower_scores_is_taken_for_the_disadvantaged() -> None:
    assert no_query_guess(np.array([0.9, 0.1, 0.5, 0.4])).tolist() == [1, 0, 1, 0]


@pytest.mark.parametrize(("n", "disadvantaged"), [(1, 0), (2, 1), (3, 1), (4, 2), (99, 49)])
def test_of_an_odd_number_the_smaller_half_is_disadvantaged(n: int, disadvantaged: int) -> None:
    assert (no_query_guess(np.linspace(0, 1, n)) == 0).sum() == disadvantaged


def test_ties_go_by_position() -> None:
    assert no_query_guess(np.full(4, 0.5)).tolist() == [0, 0, 1, 1]
    assert no_query_guess(np.array([0.5, 0.2, 0.5, 0.5])).tolist() == [0, 0, 1, 1]


@given(SCORES)
def test_nobody_guessed_disadvantaged_has_a_higher_score_than_somebody_guessed_advantaged(scores: list[float]) -> None:
    values = np.array(scores)
    guess = no_query_guess(values)
    assert guess.dtype == np.uint8
    assert (guess == 0).sum() == len(scores) // 2
    assert max(values[guess == 0], default=0) <= min(values[guess == 1])


@given(SCORES)
def test_only_the_order_of_the_scores_counts(scores: list[float]) -> None:
    values = np.array(scores)
    ranks = np.unique(values, return_inverse=True)[1]
    assert (no_query_guess(ranks.astype(np.float64)) == no_query_guess(values)).all()
