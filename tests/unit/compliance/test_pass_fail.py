"""Pass or fail: what it answers, what it costs, and that it is no privacy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.mechanisms.selection import PassFail
from compliance.noise.sampling import Seeded
from compliance.records.metrics import METRICS
from compliance.records.people import Records

PROTECTED = np.array([0, 0, 1, 1, 1, 0, 1, 1], np.uint8)
LABELS = np.array([0, 1, 0, 1, 1, 0, 0, 1], np.uint8)


def released(mechanism: PassFail, asked: BatchQuestion, epsilon: float = math.inf) -> NDArray[np.float64]:
    release = mechanism.release(asked, NO_FACTS, epsilon, 0.0, Seeded(np.random.default_rng(0)))
    assert not release.facts
    assert release.low is None
    return release.values


def question(metric: str, seed: int = 0) -> BatchQuestion:
    predictions = np.random.default_rng(seed).random((40, 8)).round(0 if METRICS[metric].binary else 3)
    return BatchQuestion(metric, predictions, Records(LABELS, PROTECTED, (metric,)))


def test_it_says_which_models_fail() -> None:
    for metric, epsilon in itertools.product(METRICS, (0.5, math.inf)):
        asked = question(metric)
        for threshold in (0.0, 0.1, 0.37):
            expected = [1.0 if abs(gap) > threshold else 0.0 for gap in asked.gaps().tolist()]
            assert released(PassFail(threshold), asked, epsilon).tolist() == expected


def test_a_signed_gap_fails_on_either_side_and_equality_passes() -> None:
    records = Records(np.zeros(4, np.uint8), np.array([0, 0, 1, 1], np.uint8), ("sp",))
    rows = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1], [1, 1, 0, 0], [1, 0, 1, 0]])
    assert released(PassFail(0.5), BatchQuestion("sp", rows, records)).tolist() == [0, 0, 1, 1, 0]
    assert released(PassFail(0.4), BatchQuestion("sp", rows, records)).tolist() == [1, 1, 1, 1, 0]


def test_a_ratio_fails_where_it_is_infinite_and_passes_where_it_is_not_defined() -> None:
    records = Records(np.zeros(4, np.uint8), np.array([0, 0, 1, 1], np.uint8), ("di",))
    rows = np.array([[1.0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 1, 0], [1, 0, 1, 1]])
    assert released(PassFail(0.4), BatchQuestion("di", rows, records)).tolist() == [1, 0, 0, 1]


def test_it_costs_everything_and_promises_nothing() -> None:
    mechanism = MECHANISMS["pass-fail"]
    assert mechanism == PassFail()
    assert mechanism.guarantee == "none"
    for epsilon in (0.1, math.inf):
        assert mechanism.cost(epsilon, 0.0).epsilon == math.inf
    assert all(mechanism.refuses(metric, 1.0, 0.0) is None for metric in METRICS)


def test_one_person_turns_a_verdict_that_is_certain_on_both_sides() -> None:
    row = np.array([[1.0, 0, 1, 0.5, 0, 0, 0, 0]])
    verdicts = {
        released(PassFail(), BatchQuestion("sp", row, Records(LABELS, PROTECTED ^ flip, ("sp",))))[0]
        for flip in (np.zeros(8, np.uint8), np.array([1] + [0] * 7, np.uint8))
    }
    assert verdicts == {0.0, 1.0}


def test_a_limit_that_is_none_is_refused() -> None:
    for threshold in (-0.1, math.nan, math.inf):
        with pytest.raises(ValueError, match="threshold must be"):
            PassFail(threshold)


def test_a_budget_out_of_range_is_refused() -> None:
    for epsilon, delta in ((0.0, 0.0), (math.nan, 0.0), (1.0, 1.0)):
        with pytest.raises(ValueError, match="must be"):
            PassFail().cost(epsilon, delta)
        with pytest.raises(ValueError, match="must be"):
            PassFail().release(question("sp"), NO_FACTS, epsilon, delta, Seeded(np.random.default_rng(0)))
