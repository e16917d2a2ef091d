"""Randomized response: exact privacy over all releases, unbiased sums, free batches."""

import itertools
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from compliance.mechanisms.mechanism import Question
from compliance.mechanisms.randomized_response import ATTRIBUTES, EPSILON, RandomizedResponse
from compliance.noise import Seeded, System
from compliance.records import Records
from fairwall.laws.bounding import metric_range
from fairwall.laws.metric import METRICS
from fairwall.laws.response import response_loss, turning_probability

MECHANISM = RandomizedResponse()


def audit(n, seed=0, metrics=("sp",)):
    generator = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    protected = np.arange(n) % 5 != 0
    records = Records(labels.astype(np.uint8), protected.astype(np.uint8), tuple(metrics))
    return Question(metrics[0], (generator.random((3, n)) < 0.3 + 0.3 * protected).astype(np.float64), records)


@pytest.mark.parametrize("epsilon", [1e-12, 0.1, 1.0, 5.0, 33.3, 40.0, 99.7, 700.0, 745.0, 2000.0])
def test_one_persons_odds_are_at_most_exp_epsilon_in_exact_arithmetic(epsilon):
    p = Fraction(turning_probability(epsilon))
    odds = (1 - p) / p
    assert odds >= 1
    # Also of the decimal that epsilon was written as, which is what is charged.
    with localcontext(prec=400):
        assert p >= Fraction(1, 2) or (Decimal(odds.numerator) / odds.denominator).ln() <= Decimal(repr(epsilon))
    assert math.log(odds.numerator) - math.log(odds.denominator) >= min(epsilon, 744) * (1 - 1e-9) - 1e-14


def test_every_release_of_every_small_world_costs_at_most_epsilon():
    # A release is a noisy vector and a function of it, so that the vectors' probabilities are all there is.
    epsilon = 0.8
    p = turning_probability(epsilon)
    worlds = list(itertools.product((0, 1), repeat=4))
    losses = set()

    def probability(noisy, protected):
        return math.prod(p if a != b else 1 - p for a, b in zip(noisy, protected, strict=True))

    for world in worlds:
        assert math.isclose(sum(probability(noisy, world) for noisy in worlds), 1)
        for person in range(4):
            other = [a ^ (i == person) for i, a in enumerate(world)]
            for noisy in worlds:
                losses.add(round(abs(math.log(probability(noisy, world) / probability(noisy, other))), 12))
    assert losses == {round(response_loss(p), 12)} == {epsilon}


def test_the_answers_are_functions_of_the_facts_and_of_public_numbers():
    asked = audit(40)
    facts = MECHANISM.release(asked, {}, 1.0, 0.0, Seeded(np.random.default_rng(1))).facts
    others = Records(asked.records.labels, 1 - asked.records.protected, asked.records.metrics)
    values = [
        MECHANISM.release(replace(asked, records=records), facts, epsilon, 0.0, System()).values
        for records, epsilon in ((asked.records, 1.0), (others, 9.0))
    ]
    np.testing.assert_array_equal(*values)


def test_the_first_batch_buys_and_the_later_ones_are_free():
    asked = audit(40)
    assert not MECHANISM.is_free({})
    first = MECHANISM.release(asked, {}, 1.0, 0.0, System())
    assert MECHANISM.is_free(first.facts)
    assert set(first.facts) == {ATTRIBUTES, EPSILON}
    second = MECHANISM.release(asked, first.facts, 1.0, 0.0, System())
    assert not second.facts
    np.testing.assert_array_equal(first.values, second.values)


@pytest.mark.parametrize("noise", [Seeded(np.random.default_rng(4)), System()])
def test_people_are_turned_over_with_the_probability_stated(noise):
    # One binomial count of 20,000 at 6 standard errors: a false alarm has probability 2e-9.
    asked = audit(20_000)
    noisy = MECHANISM.release(asked, {}, 1.0, 0.0, noise).facts[ATTRIBUTES]
    p = turning_probability(1.0)
    turned = np.count_nonzero(noisy != asked.records.protected)
    assert abs(turned - 20_000 * p) <= 6 * math.sqrt(20_000 * p * (1 - p))


def test_sums_are_unbiased_with_the_variance_stated():
    # All 2^6 noisy vectors with their exact probabilities.
    epsilon = 0.9
    p = turning_probability(epsilon)
    protected, values = np.array([1, 0, 0, 1, 1, 0]), np.array([0.2, 1.0, 0.5, 0.0, 0.7, 0.9])
    mean = second = 0.0
    for noisy in itertools.product((0, 1), repeat=6):
        weight = math.prod(p if a != b else 1 - p for a, b in zip(noisy, protected, strict=True))
        estimate = values @ ((np.array(noisy) - p) / (1 - 2 * p))
        mean, second = mean + weight * estimate, second + weight * estimate**2
    assert math.isclose(mean, values @ protected)
    variance = (values**2).sum() * math.exp(epsilon) / (math.exp(epsilon) - 1) ** 2
    assert math.isclose(second - mean**2, variance, rel_tol=1e-9)


@pytest.mark.parametrize("metric", METRICS)
def test_every_metric_is_answered_in_its_range_and_exactly_without_a_limit(metric):
    asked = audit(60, metrics=(metric,))
    exact = MECHANISM.release(asked, {}, math.inf, 0.0, System()).values
    np.testing.assert_allclose(exact, asked.gaps(), atol=2**-44)
    low, high = metric_range(metric)
    for seed, epsilon in itertools.product(range(20), (1e-20, 0.1, 1.0)):
        values = MECHANISM.release(asked, {}, epsilon, 0.0, Seeded(np.random.default_rng(seed))).values
        assert ((values >= low) & (values <= high)).all()
        np.testing.assert_array_equal(values, np.rint(values * 2.0**44) / 2.0**44)


def test_the_error_falls_with_the_number_of_people():
    errors = []
    for n in (1_000, 16_000):
        asked = audit(n)
        draws = [
            MECHANISM.release(asked, {}, 1.0, 0.0, Seeded(np.random.default_rng(seed))).values - asked.gaps()
            for seed in range(40)
        ]
        errors.append(float(np.median(np.abs(draws))))
    # 4 times less is expected, with 120 draws each; fixed seeds.
    assert 2.5 < errors[0] / errors[1] < 6
    assert errors[1] < 0.03
