"""What an answer will be worth: medians over people who do not exist, held against what real answers are worth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats

from compliance.answers import expectation
from compliance.answers.expectation import expect
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.mechanisms.noise_on_gaps import bounded
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from fairwall.laws.mechanisms.calibration import laplace_law
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.metrics.metric import find_metric

STRATA = 400, 600


def test_exact_answers_are_never_off() -> None:
    expected = expect(MECHANISMS["exact"], "sp", STRATA, 1, math.inf, 0.0, DEFAULT_SHARES)
    assert (expected.error, expected.half_width) == (0.0, 0.0)
    assert 0 < expected.midpoint_error < 0.1


@pytest.mark.parametrize("models", [1, 7])
def test_additive_noise_is_off_by_the_median_of_its_law(models: int) -> None:
    epsilon = 200.0 * models  # so little noise that no answer is cut off
    expected = expect(MECHANISMS["laplace"], "sp", STRATA, models, epsilon, 0.0, DEFAULT_SHARES)
    law = laplace_law("sp", sum(STRATA), models, epsilon)
    # Of 360 draws or more the median errs by a fourth of itself once in a thousand times; they are seeded.
    assert expected.error == pytest.approx(law.median_abs(), rel=0.25)
    assert expected.half_width == pytest.approx(float(scipy.stats.laplace(scale=law.scale).ppf(0.975)), rel=0.01)


@pytest.mark.few(1)
@pytest.mark.parametrize("metric", ["sp", "eodds_max"])
def test_counts_are_off_as_they_were_expected_to_be(metric: str) -> None:
    expected = expect(MECHANISMS["counts"], metric, STRATA, 3, 1.0, 0.0, Shares(0.3, 0.3))
    generator = np.random.default_rng(5)
    errors, halves = [], []
    least = 0.0 if find_metric(metric).absolute else -1.0
    for number in range(80):
        labels = (generator.random(1000) < 0.6).astype(np.uint8)
        protected = (generator.random(1000) < 0.7).astype(np.uint8)
        predictions = generator.random((3, 1000))
        if number % 2:
            predictions = (predictions < np.where(protected == 1, 0.28, 0.18)).astype(float)
        question = BatchQuestion(metric, predictions, Records(labels, protected, (metric,)))
        released = MECHANISMS["counts"].release(question, NO_FACTS, 1.0, 0.0, Seeded(generator))
        assert released.low is not None
        assert released.high is not None
        errors += np.abs(released.values - question.gaps()).tolist()
        halves += ((released.high - np.maximum(released.low, least)) / 2).tolist()
    assert expected.error == pytest.approx(np.median(errors), rel=0.25)
    assert expected.half_width == pytest.approx(np.median(halves), rel=0.15)


@pytest.mark.check
def test_laplace_noise_on_the_gap_of_a_small_table_is_not_worth_its_epsilon() -> None:
    laplace, counts = (
        expect(MECHANISMS[name], "sp", (80, 120), 1, 0.5, 0.0, DEFAULT_SHARES) for name in ("laplace", "counts")
    )
    assert laplace.error > laplace.midpoint_error
    assert counts.error < counts.midpoint_error


def test_truncated_answers_have_an_error_of_their_own_and_no_interval() -> None:
    truncated, plain = (
        expect(bounded(MECHANISMS["laplace"], bounding), "sp", STRATA, 1, 40.0, 0.0, DEFAULT_SHARES)
        for bounding in ("truncate", "none")
    )
    assert math.isnan(truncated.half_width)
    assert math.isnan(truncated.likely_half_width)
    assert truncated.error > 0
    assert truncated.error != plain.error


def test_choices_are_no_values() -> None:
    expected = expect(MECHANISMS["sparse-vector"], "sp", STRATA, 2, 1.0, 0.0, DEFAULT_SHARES)
    assert math.isnan(expected.error)
    assert math.isnan(expected.half_width)


def test_a_batch_that_is_too_large_to_draw_spends_as_much_on_each_model() -> None:
    people = 1 << 15
    large, small = (
        expect(MECHANISMS["laplace"], "sp", (0, people), models, 0.5 * models, 0.0, DEFAULT_SHARES)
        for models in (64, 32)
    )
    assert large == small


def test_everybody_is_told_the_same() -> None:
    expect.cache_clear()
    first = expect(MECHANISMS["laplace"], "eo", STRATA, 2, 1.0, 0.0, DEFAULT_SHARES)
    expect.cache_clear()
    assert expect(MECHANISMS["laplace"], "eo", STRATA, 2, 1.0, 0.0, DEFAULT_SHARES) == first


def test_what_a_mechanism_refuses_is_refused() -> None:
    with pytest.raises(ValueError, match="epsilon below 1"):
        expect(MECHANISMS["conceal-laplace"], "sp", STRATA, 1, 2.0, 1e-6, DEFAULT_SHARES)


@pytest.mark.check
def test_cells_that_serve_a_metric_within_a_label_are_cut_by_it() -> None:
    """Cells that are not cut by the label guess how many of a group have it, and err several times as much."""
    recommended, counts = (
        expect(MECHANISMS[name], "eo", (2000, 2000), 1, 0.5, 0.0, DEFAULT_SHARES, ("sp", "eo"))
        for name in ("recommended", "counts")
    )
    assert recommended.error <= counts.error


@pytest.mark.check
@pytest.mark.parametrize(("name", "models"), [("counts", 1), ("cube", 10)])
def test_very_many_are_imagined_as_fewer(name: str, models: int, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = MECHANISMS[name], "sp", (180_000, 120_000), models, 1.0, 0.0, DEFAULT_SHARES
    fewer = expect(*asked)
    monkeypatch.setattr(expectation, "_PEOPLE_MAX", 10**9)
    monkeypatch.setattr(expectation, "_VALUES_MAX", 10**9)
    expect.cache_clear()
    all_of_them = expect(*asked)
    expect.cache_clear()
    assert fewer.half_width == pytest.approx(all_of_them.half_width, rel=0.1)
    assert fewer.error == pytest.approx(all_of_them.error, rel=0.5)  # the median of a few draws
