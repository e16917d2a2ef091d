"""The guess that the developer makes without asking anything."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from developer.reveal import play
from developer.reveal.play import no_query_guess
from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.laws.metrics.metric import strata_of
from fairwall.wire.metrics import number_of

SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_the_half_with_the_lower_scores_is_taken_for_the_disadvantaged() -> None:
    assert no_query_guess(np.array([0.9, 0.1, 0.5, 0.4])).tolist() == [1, 0, 1, 0]


def test_of_an_odd_number_the_smaller_half_is_disadvantaged() -> None:
    for n, disadvantaged in ((1, 0), (2, 1), (3, 1), (4, 2), (99, 49)):
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


ANY = [
    ("sp", 1.0, 0.5, "laplace", False),
    ("sp", 1.0, 0.5, "counts", True),
    ("eodds_max", 1.0, 0.5, "counts", False),
    ("eodds_sum", 0.1, 0.5, "laplace", True),
    *(
        pytest.param(*game, marks=pytest.mark.slow)
        for game in (
            ("sp", 1.0, 50.0, "recommended", True),
            ("abs_eo", 1.0, 50.0, "counts", False),
            ("eodds_sum", 1.0, 50.0, "laplace", True),
            ("oad", 0.1, 50.0, "recommended", False),
        )
    ),
]


@pytest.mark.parametrize(("metric", "perturbation", "epsilon", "mechanism", "knows"), ANY)
def test_the_best_strategy_spends_its_budget_whatever_the_number_of_queries(
    metric: str, perturbation: float, epsilon: float, mechanism: str, knows: bool
) -> None:
    """It gives up queries that are not worth their noise: all of epsilon goes to those that are left, and no more."""
    rng = np.random.default_rng(0)
    features, labels, scores = np.zeros((40, 1)), (np.arange(40) % 2).astype(np.uint8), rng.random(40)
    for most in (2, 3, 5, 20, 41):
        deal = game.DeveloperDeal(
            seed=b"seed",
            metric=number_of(metric),
            epsilon=epsilon,
            mechanism=mechanism,
            strategy="best",
            queries=game.QueryCount(at_most=most),
            perturbation=perturbation,
            disadvantaged=[10] * len(strata_of(metric, labels)) if knows else [],
        )
        spent: list[tuple[int, float]] = []

        def answer(_: str, predictions: NDArray[np.float64], share: float) -> NDArray[np.float64]:
            spent.append((len(predictions), share))  # noqa: B023 - called within this round
            return rng.uniform(-1, 1, len(predictions))

        strata = [int(inside.sum()) for inside in strata_of(metric, labels)]
        test_set = play._TestSet(features, labels, lambda: scores, answer, play._purse(deal, strata, 0))
        submitted = play._reveal(deal, test_set, None)
        assert submitted.queries <= most
        assert submitted.max_prediction_change <= perturbation + 1e-12
        # One for the size of each stratum, and one to compare with where the other stratum keeps its scores.
        assert submitted.size_queries <= len(strata) * ((not knows) + (perturbation < len(strata) - 1))
        assert sum(queries for queries, _ in spent) == submitted.queries + submitted.size_queries
        assert all(share > 0 for _, share in spent)
        assert sum(share for _, share in spent) == pytest.approx(epsilon, rel=1e-12)
