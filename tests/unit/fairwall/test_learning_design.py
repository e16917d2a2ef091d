"""The developer's matrix and the audit's have the same columns at the same places."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from fairwall.learning.design import design, one_hot

CODES = np.array([[0, 2, 1], [1, 0, 0]])


def test_clean_encodings_stand_where_the_columns_would() -> None:
    for places in ((), (0,), (1,), (2,), (0, 2), (0, 1, 2)):
        whole = design(CODES, (2, 3, 2), {})
        assert whole.tolist() == [[1, 0, 0, 0, 1, 0, 1], [0, 1, 1, 0, 0, 1, 0]]
        sizes = (2, 3, 2)
        clear = [place for place in range(3) if place not in places]
        encodings = {place: one_hot(CODES[:, place], sizes[place]) for place in reversed(places)}
        assert np.array_equal(design(CODES[:, clear], [sizes[place] for place in clear], encodings), whole)


def test_a_sanitised_encoding_is_taken_as_it_comes() -> None:
    sanitised = np.array([[1, 1, 0], [0, 0, 0]], np.uint8)
    assert design(CODES[:, [0, 2]], (2, 2), {1: sanitised})[:, 2:5].tolist() == sanitised.tolist()


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda: one_hot(np.array([0, 3]), 3), "^a code is outside its domain of 3$"),
        (lambda: one_hot(np.array([-1, 0]), 3), "outside its domain"),
        (lambda: design(CODES, (2, 3), {}), "as many domain sizes"),
        (lambda: design(CODES, (2, 3, 2), {4: np.zeros((2, 2), np.uint8)}), "places"),
        (lambda: design(CODES, (2, 3, 2), {0: np.zeros((1, 2), np.uint8)}), "shape"),
        (lambda: design(CODES, (2, 3, 2), {0: np.full((2, 2), 2, np.uint8)}), "not 0 or 1"),
        (lambda: design(CODES, (2, 3, 2), {0: np.full((2, 2), -1, np.int8)}), "not 0 or 1"),
    ],
)
def test_what_does_not_fit_is_refused(build: Callable[[], object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        build()
