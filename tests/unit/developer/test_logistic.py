"""Logistic regression, beside scikit-learn's at its optimum."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from developer.reveal import logistic_models
from developer.reveal.logistic_models import Logistic, fit
from sim import datasets

Table = tuple[NDArray[np.float64], NDArray[np.uint8]]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    """Small tables: normal columns, one-hot ones, constants, copies, and columns that tell the label."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    rows, columns = draw(st.integers(2, 40)), draw(st.integers(0, 3))
    labels = rng.permutation(np.arange(rows) < draw(st.integers(1, rows - 1))).astype(np.uint8)
    features = [rng.normal(size=(rows, columns)) * draw(st.sampled_from([1e-3, 1.0, 30.0]))]
    if draw(st.booleans()):
        features.append(np.eye(3)[rng.integers(0, 3, rows)])
    if draw(st.booleans()):
        features.append(np.full((rows, 1), draw(st.sampled_from([0.0, 1.0, -5.0]))))
    if draw(st.booleans()):
        features.append(features[0])
    if draw(st.booleans()) or not sum(part.shape[1] for part in features):
        features.append((2.0 * labels[:, None] - 1) * draw(st.sampled_from([0.1, 1.0, 50.0])))
    return np.hstack(features), labels


def reference(features: NDArray[np.float64], labels: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Scikit-learn's scores, as near to the optimum as it gets."""
    from sklearn.linear_model import LogisticRegression

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that rounding is all that is left
        model = LogisticRegression(solver="newton-cholesky", tol=1e-14, max_iter=1000).fit(features, labels)
    scores: NDArray[np.float64] = model.predict_proba(features)[:, 1]
    return scores


def slope(fitted: Logistic, features: NDArray[np.float64], labels: NDArray[np.uint8]) -> float:
    """The largest derivative of what is minimised, which is convex: 0 at its minimum alone."""
    missed = fitted.scores(features) - labels
    return float(max(abs(missed.sum()), np.abs(missed @ features + fitted.weights).max()))


@settings(max_examples=40)
@given(tables())
def test_any_small_table_is_fitted_as_by_scikit_learn(table: Table) -> None:
    fitted = fit(*table)
    assert slope(fitted, *table) < 1e-8
    assert fitted.scores(table[0]) == pytest.approx(reference(*table), abs=1e-6)


@pytest.mark.parametrize("source", [pytest.param("adult", marks=pytest.mark.slow), "compas", "german"])
def test_a_shipped_table_is_fitted_as_by_scikit_learn(source: str) -> None:
    table = datasets.load(source)
    features, labels = table.features[::2], table.labels[::2]
    assert np.linalg.matrix_rank(features) < features.shape[1], "one-hot columns add up to one"
    assert np.abs(fit(features, labels).scores(features) - reference(features, labels)).max() < 1e-9


def test_a_first_step_that_goes_too_far_is_halved(monkeypatch: pytest.MonkeyPatch) -> None:
    # Nearly all labels alike, and one far row: the first Newton step overshoots by far.
    features = np.concatenate([np.linspace(-1, 1, 200), [1000.0]])[:, None]
    labels = (np.arange(201) == 200).astype(np.uint8)
    labels[3] = 1
    assert fit(features, labels).scores(features) == pytest.approx(reference(features, labels), abs=1e-6)
    monkeypatch.setattr(logistic_models, "_halved", lambda *_: 1.0)
    assert slope(fit(features, labels), features, labels) > 1


@pytest.mark.parametrize("label", [0, 1])
def test_labels_that_are_all_alike_cannot_be_fitted(label: int) -> None:
    with pytest.raises(ValueError, match="rows of both labels"):
        fit(np.ones((3, 1)), np.full(3, label, np.uint8))


def test_scores_far_from_a_half_keep_their_digits() -> None:
    certain = Logistic(np.array([1.0]), 0.0)
    with np.errstate(over="raise"):
        assert certain.scores(np.array([[-800.0], [-100.0], [0.0], [800.0]])).tolist() == [0, np.exp(-100), 0.5, 1]
