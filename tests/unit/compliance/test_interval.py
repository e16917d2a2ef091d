"""Intervals: coverage over simulated data, from public numbers alone."""

import inspect
import math

import numpy as np
import pytest

from compliance import interval
from compliance.interval import noise_interval, probability_above, sampling_deviation
from fairwall.laws.noise import Cauchy, Gaussian, Laplace

LAWS = [Laplace(0.05), Gaussian(0.05), Cauchy(0.02)]


def test_nothing_secret_is_asked_for():
    for function in (noise_interval, sampling_deviation, probability_above):
        assert not {"n0", "n1", "records", "question"} & set(inspect.signature(function).parameters)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_noise_intervals_cover_as_often_as_stated(law, level):
    # A binomial count at 6 standard errors: a false alarm has probability 2e-9.
    runs = 20_000
    low, high = noise_interval(0.0, law, level)
    inside = np.count_nonzero(np.abs(law.sample(np.random.default_rng(0), runs)) <= high)
    assert low == -high
    assert abs(inside - runs * level) <= 6 * math.sqrt(runs * level * (1 - level))


def simulated(law, people, share, gap, runs, absolute=False):
    """Answers about test sets of a population with this gap, whose rates are where their variance is largest."""
    generator = np.random.default_rng(1)
    n1 = round(people * share)
    rates = 0.5 + gap * (1 - share), 0.5 - gap * share
    hits = [generator.binomial(n, rate, runs) / n for n, rate in zip((n1, people - n1), rates, strict=True)]
    exact = hits[0] - hits[1]
    return (np.abs(exact) if absolute else exact) + law.sample(generator, runs)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("absolute", [False, True])
def test_at_the_threshold_itself_it_is_claimed_to_be_above_no_oftener_than_stated(law, absolute):
    # The claim "P > 95%" is false here, and may come in 5% of cases: at 6 standard errors, as above.
    people, share, threshold, runs = 1_000, 0.9, 0.2, 600
    answers = simulated(law, people, share, threshold, runs, absolute)
    claims = np.array([probability_above(x, law, people, (0.85, 0.95), threshold, absolute=absolute) for x in answers])
    for alpha in (0.05, 0.2):
        claimed = np.count_nonzero(claims > 1 - alpha)
        assert claimed <= runs * alpha + 6 * math.sqrt(runs * alpha * (1 - alpha))


@pytest.mark.parametrize("law", LAWS)
def test_with_the_right_share_the_claims_are_calibrated(law):
    # Kolmogorov and Smirnov at 1e-7: at the threshold the probability is uniform.
    from scipy.stats import kstest

    answers = simulated(law, 2_000, 0.8, 0.05, 800)
    claims = [probability_above(x, law, 2_000, (0.8, 0.8), 0.05) for x in answers]
    assert kstest(claims, "uniform").pvalue > 1e-7


def test_it_agrees_with_the_closed_form_of_two_normal_laws():
    law, sigma = Gaussian(0.03), sampling_deviation(400, (0.25, 0.25))
    spread = math.hypot(0.03, sigma)
    expected = 0.5 * math.erfc(-(0.15 - 0.1) / spread / math.sqrt(2))
    assert probability_above(0.15, law, 400, (0.25, 0.25), 0.1) == pytest.approx(expected, abs=1e-4)
    both = expected + 0.5 * math.erfc((0.15 + 0.1) / spread / math.sqrt(2))
    assert probability_above(0.15, law, 400, (0.25, 0.25), 0.1, absolute=True) == pytest.approx(both, abs=1e-4)


def test_the_deviation_is_that_of_the_worst_share():
    assert sampling_deviation(100, (0.1, 0.6)) == pytest.approx(math.sqrt(1 / 40 + 1 / 360))
    assert sampling_deviation(100, (0.4, 0.95)) == pytest.approx(math.sqrt(1 / 20 + 1 / 380))


def test_without_noise_the_interval_is_a_point_and_sampling_remains():
    assert noise_interval(0.3, Laplace(0.0)) == (0.3, 0.3)
    assert 0.5 < probability_above(0.3, Laplace(0.0), 100, (0.5, 0.5), 0.2) < 1


def test_what_was_not_answered_has_no_interval():
    assert math.isnan(noise_interval(math.nan, LAWS[0]).low)
    for absolute in (False, True):
        assert math.isnan(probability_above(math.nan, LAWS[0], 100, (0.5, 0.5), 0.1, absolute=absolute))


def test_arguments_out_of_range_are_refused():
    class Odd(Laplace):
        pass

    with pytest.raises(ValueError, match="level"):
        noise_interval(0.0, LAWS[0], 1.0)
    with pytest.raises(ValueError, match="Odd"):
        noise_interval(0.0, Odd(1.0))
    for shares in ((0.0, 0.5), (0.6, 0.5), (0.5, 1.0), (math.nan, 0.5)):
        with pytest.raises(ValueError, match="shares"):
            sampling_deviation(10, shares)
    with pytest.raises(ValueError, match="people"):
        sampling_deviation(0, (0.5, 0.5))
    assert interval.Interval(0.0, 1.0).high == 1.0
