"""The differencing detector: what it flags, and how little of an attack it sees."""

from __future__ import annotations

import numpy as np
import pytest

from compliance.answers.differencing import Detector, flagged

RNG = np.random.default_rng(3)
BASE = RNG.uniform(0, 1, 50)
NOBODY = np.empty((0, 50))


def changed(people: int) -> np.ndarray:
    model = BASE.copy()
    model[:people] = 1 - model[:people]
    return model


def test_a_model_that_differs_in_few_people_is_flagged() -> None:
    for people, flag in ((0, False), (1, True), (3, True), (4, False), (50, False)):
        assert flagged(np.stack([BASE, changed(people)]), NOBODY, 3).tolist() == [False, flag]
        assert flagged(changed(people)[None], BASE[None], 3).tolist() == [flag]


def test_none_is_flagged_where_nobody_watches() -> None:
    assert not flagged(np.stack([BASE, changed(1)]), NOBODY, 0).any()


def test_rows_that_differ_everywhere_are_never_flagged() -> None:
    assert not flagged(np.clip(BASE + RNG.uniform(-0.1, 0.1, (40, 50)), 0, 1), NOBODY, 5).any()


def test_one_query_a_person_is_flagged_from_the_second_on() -> None:
    rows = np.tile(BASE, (50, 1))
    np.fill_diagonal(rows, 1 - BASE)
    assert flagged(rows, NOBODY, 2).tolist() == [False] + [True] * 49


def test_the_detector_remembers_earlier_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("compliance.answers.differencing._BLOCK", 120)  # two models at a time
    detector = Detector(1)
    detector.watch("a", RNG.uniform(0, 1, (7, 50)))
    detector.watch("b", BASE[None])
    detector.watch("c", np.stack([RNG.uniform(0, 1, 50), changed(1), changed(2)]))
    # The last one differs from the second in one person.
    assert detector.flagged == {"a": 0, "b": 0, "c": 2}
