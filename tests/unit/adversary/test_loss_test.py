"""The loss test: it counts where a model is right, for each group apart."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from adversary.attacks.loss_attack import LossTestResult, loss_test

LABELS = np.array([1, 0, 1, 0, 1], np.uint8)
FEATURES = np.arange(10.0).reshape(5, 2)


def scoring(*scores: float) -> object:
    return lambda _: np.array(scores)


@pytest.mark.parametrize(
    ("scores", "disadvantaged_rows", "advantaged", "disadvantaged"),
    [
        ((0.9, 0.1, 0.9, 0.1, 0.9), 2, 1.0, 1.0),
        ((0.1, 0.9, 0.1, 0.9, 0.1), 2, 0.0, 0.0),
        ((0.9, 0.9, 0.9, 0.1, 0.9), 2, 1.0, 0.5),
        ((0.9, 0.1, 0.1, 0.1, 0.9), 2, 2 / 3, 1.0),
        ((0.9, 0.1, 0.9, 0.1, 0.1), 4, 0.0, 1.0),
    ],
)
def test_each_group_s_share_of_right_decisions(
    scores: tuple[float, ...], disadvantaged_rows: int, advantaged: float, disadvantaged: float
) -> None:
    test = loss_test(scoring(*scores), FEATURES, LABELS, disadvantaged_rows)  # type: ignore[arg-type]
    assert test == LossTestResult(advantaged, disadvantaged)


def test_a_score_of_one_half_is_a_yes() -> None:
    below = np.nextafter(0.5, 0)
    test = loss_test(scoring(0.5, below, 0.5, below, 0.5), FEATURES, LABELS, 1)  # type: ignore[arg-type]
    assert test == LossTestResult(1.0, 1.0)


@pytest.mark.parametrize("rows", [0, 5, 6, -1])
def test_a_sample_without_one_of_the_groups_is_no_test_and_asks_nothing(rows: int) -> None:
    def untouched(features: NDArray[np.float64]) -> NDArray[np.float64]:
        raise AssertionError("the model was asked")

    with pytest.raises(ValueError, match="both groups"):
        loss_test(untouched, FEATURES, LABELS, rows)


def test_the_model_is_asked_once_about_every_row_in_order() -> None:
    asked = []

    def model(features: NDArray[np.float64]) -> NDArray[np.float64]:
        asked.append(features)
        return np.zeros(len(features))

    loss_test(model, FEATURES, LABELS, 2)
    assert len(asked) == 1
    assert asked[0].tolist() == FEATURES.tolist()
