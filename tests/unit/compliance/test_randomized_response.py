"""Randomized response: exact privacy over all releases, unbiased sums, free batches."""

import itertools
import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from compliance.answers.audits import AuditCase
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours
from compliance.mechanisms.mechanism import BatchQuestion
from compliance.mechanisms.randomized_response import ATTRIBUTES, EPSILON, RandomizedResponse
from compliance.noise.sampling import Seeded, System
from compliance.records.people import Records
from fairwall.laws.mechanisms.calibration import metric_range
from fairwall.laws.noise.randomized_response import COPIES_MAX, combined, noisy_sums, response_loss, turning_probability

MECHANISM = RandomizedResponse()


def audit(n, seed=0, metrics=("sp",)):
    generator = np.random.default_rng(seed)
    labels = np.arange(n) % 2
    protected = np.arange(n) % 5 != 0
    records = Records(labels.astype(np.uint8), protected.astype(np.uint8), tuple(metrics))
    return BatchQuestion(metrics[0], (generator.random((3, n)) < 0.3 + 0.3 * protected).astype(np.float64), records)


def test_one_persons_odds_are_at_most_exp_epsilon_in_exact_arithmetic():
    for epsilon in (1e-12, 0.1, 1.0, 5.0, 33.3, 40.0, 99.7, 700.0, 745.0, 2000.0):
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
        for records, epsilon in ((asked.records, 1.0), (others, 0.3))
    ]
    np.testing.assert_array_equal(*values)


def test_the_first_batch_buys_and_the_later_ones_are_free():
    asked = audit(40)
    assert not MECHANISM.is_free({}, 1.0)
    first = MECHANISM.release(asked, {}, 1.0, 0.0, System())
    assert MECHANISM.is_free(first.facts, 1.0)
    assert set(first.facts) == {ATTRIBUTES, EPSILON}
    second = MECHANISM.release(asked, first.facts, 1.0, 0.0, System())
    assert not second.facts
    np.testing.assert_array_equal(first.values, second.values)


def bought(*epsilons, asked=None, seed=0):
    """The facts of an account that asked at these epsilons, one after the other, and its last answers."""
    facts, noise = {}, Seeded(np.random.default_rng(seed))
    for epsilon in epsilons:
        released = MECHANISM.release(asked or audit(40), facts, epsilon, 0.0, noise)
        facts = {**facts, **released.facts}
    return facts, released.values


def test_a_larger_epsilon_buys_one_more_copy_and_a_smaller_one_none():
    facts, _ = bought(0.01, 0.01, 0.5, 0.2, 2.0, 0.5)
    assert facts[EPSILON].tolist() == [0.01, 0.5, 2.0]
    assert facts[ATTRIBUTES].shape == (3, 40)
    assert [MECHANISM.is_free(facts, epsilon) for epsilon in (0.01, 2.0, 2.1)] == [True, True, False]


def test_an_account_of_an_old_ledger_goes_on():
    facts, _ = bought(0.5)
    old = {ATTRIBUTES: facts[ATTRIBUTES][0], EPSILON: facts[EPSILON]}
    free = [MECHANISM.release(audit(40), known, 0.3, 0.0, System()).values for known in (old, facts)]
    np.testing.assert_array_equal(*free)
    assert MECHANISM.release(audit(40), old, 1.0, 0.0, System()).facts[ATTRIBUTES].shape == (2, 40)


def test_copies_cost_exactly_their_sum():
    # Of one person, whose copies are all that a flip changes: every outcome of three copies.
    epsilons = (0.3, 0.8, 1.1)
    chances = [turning_probability(epsilon) for epsilon in epsilons]
    worst = max(
        abs(sum(math.log((1 - p) / p) * (1 if bit else -1) for bit, p in zip(bits, chances, strict=True)))
        for bits in itertools.product((0, 1), repeat=3)
    )
    assert worst == pytest.approx(sum(epsilons), abs=1e-12)
    ledger = Ledger()
    ledger.set_budget("loans", Neighbours.A_FLIP, Budget(2.2))
    ledger.allocate("loans", "ann", 2.2)
    asked = audit(40)
    case = AuditCase("loans", asked.records, MECHANISM, ledger, 10)
    charged = [
        case.answer("ann", f"r{i}", b"", "sp", asked.predictions, epsilon).request.loss.epsilon
        for i, epsilon in enumerate((0.3, 0.3, 0.8, 0.5, 1.1, 1.1))
    ]
    assert charged == [0.3, 0, 0.8, 0, 1.1, 0]
    assert (ledger.standing("loans").spent, ledger.standing("loans").remaining) == (2.2, 0.0)


def test_copies_are_combined_without_bias_and_err_less_than_the_best_one():
    for epsilons in ((0.5, 0.5), (0.2, 1.5), (1.0, 4.0), (0.1, 0.4, 2.0), (math.inf, 1.0)):
        # Every outcome with its exact probability.
        chances = [turning_probability(epsilon) for epsilon in epsilons]
        outcomes = np.array(list(itertools.product((0.0, 1.0), repeat=len(epsilons)))).T
        noisy, probability = combined(outcomes, chances)
        estimates = (noisy - probability) / (1 - 2 * probability)
        for attribute in (0, 1):
            weights = np.prod(
                [np.where(row == attribute, 1 - p, p) for row, p in zip(outcomes, chances, strict=True)], 0
            )
            assert weights @ estimates == pytest.approx(attribute, abs=1e-12)
            variance = weights @ (estimates - attribute) ** 2
            alone = [p * (1 - p) / (1 - 2 * p) ** 2 for p in chances]
            inverse = 0.0 if min(alone) == 0 else 1 / sum(1 / one for one in alone)
            assert variance <= inverse * (1 + 1e-9)  # the best weighted mean of the copies' estimates
            assert variance < min(alone) or min(alone) == 0


def test_more_copies_than_are_gone_through_are_combined_from_the_best():
    copies, chances = np.ones((COPIES_MAX + 5, 3)), [turning_probability(0.1 * i) for i in range(1, COPIES_MAX + 6)]
    noisy, probability = combined(copies, chances)
    assert (noisy.shape, probability) == ((3,), combined(copies[5:], chances[5:])[1])


@pytest.mark.check
def test_two_copies_answer_better_than_one():
    # 200 draws of three models each: a ratio of 0.8 is expected, and at 0.9 five standard errors away.
    asked = audit(2_000)
    errors = [
        np.sqrt(np.mean([(bought(*epsilons, asked=asked, seed=seed)[1] - asked.gaps()) ** 2 for seed in range(200)]))
        for epsilons in ((0.8,), (0.6, 0.8))
    ]
    assert errors[1] < 0.9 * errors[0]


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


# The intervals of a sum of gaps take long.
@pytest.mark.few(1)
@pytest.mark.parametrize("metric", ["sp", "ppv", "eodds_max", "di"])
def test_every_metric_is_answered_in_its_range_and_exactly_without_a_limit(metric):
    asked = audit(60, metrics=(metric,))
    exact = MECHANISM.release(asked, {}, math.inf, 0.0, System()).values
    np.testing.assert_allclose(exact, asked.gaps(), atol=2**-44)
    low, high = metric_range(metric)
    for seed, epsilon in itertools.product(range(8), (1e-20, 0.1, 1.0)):
        values = MECHANISM.release(asked, {}, epsilon, 0.0, Seeded(np.random.default_rng(seed))).values
        assert ((values >= low) & (values <= high)).all()
        np.testing.assert_array_equal(values, np.rint(values * 2.0**44) / 2.0**44)


@pytest.mark.check
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


@pytest.mark.parametrize("p", [0.0, 0.4])
def test_what_is_predicted_of_noisy_sums_has_the_moments_of_turning_people_over(p):
    n0, n1, mean0, mean1, variance, draws = 30, 70, 0.2, 0.6, 0.05, 200_000
    means = np.full(draws, mean0), np.full(draws, mean1)
    size, sums = noisy_sums((n0, n1), means, np.full(draws, variance), p, np.random.default_rng(4))
    # Of 1, v and 1 - v, added up over whoever is 1 once turned over; six standard errors each.
    for drawn, here0, here1, within in (
        (size, 1.0, 1.0, 0.0),
        (sums, mean0, mean1, variance),
        (size - sums, 1 - mean0, 1 - mean1, variance),
    ):
        mean = n1 * here1 * (1 - p) + n0 * here0 * p
        var = p * (1 - p) * (n0 * (here0**2 + within) + n1 * (here1**2 + within))
        assert np.mean(drawn) == pytest.approx(mean, abs=6 * math.sqrt(var / draws) + 1e-9)
        assert np.var(drawn) == pytest.approx(var, rel=6 * math.sqrt(2 / draws), abs=1e-9)
