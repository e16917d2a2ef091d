"""The base model: what it learns from, and what it must not have seen."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from developer.reveal.logistic_models import accuracy, cross_fitted, identity, logistic


def people(n: int) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Features and labels that they tell most of."""
    rng = np.random.default_rng(n)
    features = rng.normal(size=(n, 3))
    labels = (features[:, 0] + 0.3 * rng.normal(size=n) > 0).astype(np.uint8)
    return features, labels


def test_a_cross_fitted_score_does_not_look_at_its_own_rows_label() -> None:
    for row in (0, 1, 17, 42, 49):
        features, labels = people(50)
        flipped = labels.copy()
        flipped[row] = 1 - labels[row]
        before, after = cross_fitted(features, labels), cross_fitted(features, flipped)
        assert after[row] == before[row]
        assert (after != before).any()


def test_cross_fitted_scores_tell_the_labels_of_rows_they_have_not_seen() -> None:
    features, labels = people(200)
    assert accuracy(cross_fitted(features, labels), labels) > 0.8


def test_any_test_set_that_a_scenario_allows_can_be_cross_fitted() -> None:
    for n in (3, 4, 5, 6, 11):
        labels = (np.arange(n) % 2).astype(np.uint8)
        scores = cross_fitted(people(n)[0], labels)
        assert scores.shape == (n,)
        assert ((scores >= 0) & (scores <= 1)).all()


def test_a_label_that_only_one_row_has_is_not_known_where_that_row_is_held_out() -> None:
    features, _ = people(10)
    labels = np.zeros(10, np.uint8)
    labels[3] = 1
    assert cross_fitted(features, labels)[3] == 0


@pytest.mark.parametrize("label", [0, 1])
def test_labels_that_are_all_alike_give_that_label_as_every_score(label: int) -> None:
    features, _ = people(20)
    labels = np.full(20, label, np.uint8)
    assert (logistic(features, labels)(features[:7]) == np.full(7, label)).all()
    assert (cross_fitted(features, labels) == label).all()


def test_a_trained_model_scores_rows_it_has_not_seen_and_is_a_function_of_its_table_alone() -> None:
    features, labels = people(300)
    model, again = logistic(features[:200], labels[:200]), logistic(features[:200], labels[:200])
    scores = model(features[200:])
    assert scores.shape == (100,)
    assert ((scores >= 0) & (scores <= 1)).all()
    assert accuracy(scores, labels[200:]) > 0.8
    assert (again(features[200:]) == scores).all()


def test_the_score_of_synthetic_people_is_their_one_feature() -> None:
    assert identity(np.array([[0.0], [0.25], [1.0]])).tolist() == [0.0, 0.25, 1.0]
    assert identity(np.array([[-0.5], [1.5]])).tolist() == [0.0, 1.0]


def test_accuracy_is_the_share_of_right_decisions_with_half_accepted() -> None:
    labels = np.array([1, 1, 0, 0], np.uint8)
    assert accuracy(np.array([0.5, 0.4, 0.6, 0.1]), labels) == 0.5
    assert accuracy(np.array([0.9, 0.5, 0.1, 0.0]), labels) == 1


def test_accuracy_of_many_models_is_one_number_each() -> None:
    labels = np.array([1, 0], np.uint8)
    scores = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
    assert accuracy(scores, labels).tolist() == [1, 0.5, 0]
