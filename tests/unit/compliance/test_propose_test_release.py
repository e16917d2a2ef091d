"""Propose, test, release: epsilon and delta exactly, for all neighbouring counts of small data sets."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from compliance.mechanisms.mechanism import BatchQuestion
from compliance.mechanisms.propose_test_release import ProposeTestRelease
from compliance.noise.sampling import Seeded, System
from compliance.records.people import Records
from fairwall.laws.mechanisms.calibration import proposed_bound
from fairwall.laws.metrics.sensitivity import local_sensitivity
from tests.support.noise_sources import Spy

MECHANISM = ProposeTestRelease(minority_share=0.3)


def audit(n0, n1, metric="sp", models=3):
    protected = np.repeat([0, 1], [n0, n1])
    labels = np.arange(n0 + n1) % 10 < 3  # strata of unlike sizes
    generator = np.random.default_rng(0)
    records = Records(labels.astype(np.uint8), protected.astype(np.uint8), (metric,))
    return BatchQuestion(metric, generator.random((models, n0 + n1)), records)


def pass_probability(mechanism, minority, people, epsilon, delta):
    """P(D + noise >= t), by the tail of the discrete Laplace law."""
    distance = mechanism.distance(minority, people)
    if math.isinf(distance):
        return 1.0
    q, missing = math.exp(-epsilon * mechanism.test_share), mechanism.passing_distance(epsilon, delta) - distance
    return q**missing / (1 + q) if missing >= 1 else 1 - q ** (1 - missing) / (1 + q)


def hockey_stick(p, other_p, shift, scale, epsilon):
    """Return sup over sets of P(set) - e^epsilon P'(set), for passing at p with Laplace noise, or failing."""
    failing = max(0.0, (1 - p) - math.exp(epsilon) * (1 - other_p))
    ratio = math.log(p / other_p)
    # The log-ratio at x falls from ratio + shift/scale to ratio - shift/scale between the two locations.
    if ratio + shift / scale <= epsilon:
        return failing
    if ratio - shift / scale >= epsilon:
        return failing + p - math.exp(epsilon) * other_p
    x = (shift - scale * (epsilon - ratio)) / 2
    below = 1 - 0.5 * math.exp(-x / scale), 0.5 * math.exp(-(shift - x) / scale)
    return failing + p * below[0] - math.exp(epsilon) * other_p * below[1]


def test_all_neighbouring_counts_are_within_epsilon_and_delta():
    for epsilon, delta, metric in ((0.5, 1e-2, "sp"), (8.0, 1e-6, "abs_sp"), (1.0, 0.3, "sp")):
        worst = 0.0
        for n in (3, 4, 7, 10, 25, 60):
            labels = np.zeros(n, np.uint8)
            scale = MECHANISM.law(metric, labels, 1, epsilon).scale
            for n0 in range(1, n - 1):
                ends = (n0, n - n0), (n0 + 1, n - n0 - 1)
                # What a flip between these two can do is no more than either one's local sensitivity.
                shift = min(local_sensitivity(metric, *counts) for counts in ends)
                p, q = (pass_probability(MECHANISM, min(counts), n, epsilon, delta) for counts in ends)
                worst = max(worst, hockey_stick(p, q, shift, scale, epsilon), hockey_stick(q, p, shift, scale, epsilon))
        assert 0 < worst <= delta * (1 + 1e-9)


def test_a_test_without_noise_on_the_distance_would_not_be():
    # The reason for the test: passing whenever D >= 1 tells the counts for certain.
    assert hockey_stick(1.0, 1e-300, 0.1, 0.1, 2.0) > 0.5


# At the last two float64 rounds a quotient down that is above a whole number.
PASSING = [
    *((0.1, 1e-6), (1.0, 1e-5), (3.0, 0.4), (1000.0, 1e-9), (1e-3, 1e-12)),
    *((0.2, 0.08905869359514752), (0.35, 0.017199862202751652)),
]


def test_the_passing_distance_is_the_least_that_delta_allows():
    for epsilon, delta in PASSING:
        q, t = math.exp(-epsilon * MECHANISM.test_share), MECHANISM.passing_distance(epsilon, delta)
        assert q**t / (1 + q) <= delta * (1 + 1e-12)
        assert t == 1 or q ** (t - 1) / (1 + q) > delta * (1 - 1e-9)


def test_the_distance_is_the_number_of_flips_until_the_bound_fails():
    for n, share in itertools.product((3, 5, 8, 21, 40), (0.01, 0.1, 0.3, 0.5)):
        mechanism = ProposeTestRelease(minority_share=share)
        bound = Fraction(n + 1, mechanism.proposed_size(n) * (n + 1 - mechanism.proposed_size(n)))

        def holds(n0, n=n, bound=bound):
            leaving = max(min(n0, n - n0), 2)
            return Fraction(n + 1, leaving * (n + 1 - leaving)) <= bound

        fails = [n0 for n0 in range(1, n) if not holds(n0)]
        for n0 in range(1, n):
            expected = min((abs(n0 - other) for other in fails), default=math.inf)
            assert mechanism.distance(min(n0, n - n0), n) == expected


@pytest.mark.few(1)
@pytest.mark.parametrize(("noise", "metric"), [(Seeded(np.random.default_rng(5)), "sp"), (System(), "eodds_max")])
def test_it_passes_as_often_as_stated_and_fails_as_a_whole(noise, metric):
    # A binomial count at 6 standard errors: a false alarm has probability 2e-9.
    epsilon, delta, runs = 2.0, 0.05, 1_500
    asked = audit(20, 24, metric)
    labels = asked.records.labels
    strata = {"sp": [(20, 44)], "eo": [(6, 15)], "eodds_max": [(6, 15), (14, 29)]}[metric]
    # The smallest distance counts, so the least of the probabilities.
    p = min(pass_probability(MECHANISM, *stratum, epsilon, delta) for stratum in strata)
    assert 0.05 < p < 0.95
    passed = 0
    for _ in range(runs):
        values = MECHANISM.release(asked, {}, epsilon, delta, noise).values
        assert np.isnan(values).all() or not np.isnan(values).any()
        passed += not np.isnan(values).any()
    assert [np.count_nonzero(labels == label) for label in (1, 0)] == [15, 29]
    assert abs(passed - runs * p) <= 6 * math.sqrt(runs * p * (1 - p))


def test_what_passes_has_the_noise_of_the_law():
    # Kolmogorov and Smirnov at 1e-7.
    from scipy.stats import kstest, laplace

    asked, noise = audit(40, 60, models=4), Seeded(np.random.default_rng(6))
    scale = MECHANISM.law("sp", asked.records.labels, 4, 5.0).scale
    assert math.isclose(scale, 4 * (101 / (30 * 71)) / (5.0 * 0.75))
    draws = np.array([MECHANISM.release(asked, {}, 5.0, 0.01, noise).values - asked.gaps() for _ in range(1_000)])
    draws = draws[~np.isnan(draws).any(axis=1)]
    assert len(draws) > 900
    assert kstest(draws.ravel(), laplace(scale=scale).cdf).pvalue > 1e-7


@pytest.mark.parametrize("metric", ["sp", "eodds_sum"])
def test_the_noise_on_the_distance_and_on_the_answers_share_epsilon(metric):
    epsilon, asked, spy = 2.0, audit(20, 24, metric, models=5), Spy(Seeded(np.random.default_rng(1)))
    MECHANISM.release(asked, {}, epsilon, 0.05, spy)
    answers, distance = spy.asked
    assert (distance.scale, distance.step) == (1 / (epsilon * MECHANISM.test_share), 1.0)
    bound = answers.scale * (1 - MECHANISM.test_share) * epsilon / 5
    strata = {"sp": (44,), "eo": (15,), "eodds_sum": (15, 29)}[metric]
    allowance = bound - max(proposed_bound(metric, people, MECHANISM.minority_share) for people in strata)
    # Rounding both neighbours may move them a step apart, and float64 another one.
    assert allowance == pytest.approx(2 * answers.step, rel=1e-6)


def test_a_proposal_that_always_holds_always_passes():
    mechanism = ProposeTestRelease(minority_share=0.01)
    for seed in range(50):
        values = mechanism.release(audit(1, 99), {}, 0.1, 1e-9, Seeded(np.random.default_rng(seed))).values
        assert not np.isnan(values).any()


def test_price_refusals_and_parameters():
    loss = MECHANISM.cost(0.7, 1e-6)
    assert (loss.epsilon, loss.delta) == (0.7, 1e-6)
    assert "delta" in (MECHANISM.refuses("sp", 1.0, 0.0) or "")
    assert MECHANISM.refuses("di", 1.0, 1e-6)
    assert MECHANISM.refuses("ppv", 1.0, 1e-6)
    assert MECHANISM.refuses("eodds_sum", 1.0, 1e-6) is None
    asked = audit(10, 30)
    np.testing.assert_array_equal(MECHANISM.release(asked, {}, math.inf, 0.0, System()).values, asked.gaps())
    for bad in ({"minority_share": 0.0}, {"minority_share": 0.6}, {"test_share": 1.0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            ProposeTestRelease(**bad)
