"""The choice of the fairest model: exact privacy, and draws against the exact law."""

import itertools
import math

import numpy as np
import pytest

from compliance.mechanisms.mechanism import BatchQuestion
from compliance.mechanisms.selection import ExponentialMechanism, without_sign
from compliance.noise.sampling import Seeded, System
from compliance.records.people import Records
from fairwall.laws.mechanisms.selection import permute_and_flip_exponents
from tests.support.choice_costs import permute_and_flip_gap_loss, permute_and_flip_loss, permute_and_flip_probabilities
from tests.support.noise_sources import Spy


def question(protected, predictions, metric="sp", labels=None):
    labels = np.zeros(len(protected)) if labels is None else labels
    records = Records(np.array(labels, np.uint8), np.array(protected, np.uint8), (metric,))
    return BatchQuestion(metric, np.array(predictions, np.float64), records)


def probabilities(asked, epsilon):
    asked = without_sign(asked)
    exponents = permute_and_flip_exponents(-np.abs(asked.gaps()), asked.sensitivities().overall, epsilon)
    return permute_and_flip_probabilities(exponents)


def neighbours(n):
    for protected in itertools.product((0, 1), repeat=n):
        for person in range(n):
            flipped = [a ^ (i == person) for i, a in enumerate(protected)]
            if not protected[person] and sum(protected) and sum(flipped) < n:
                yield protected, flipped


def test_the_law_is_that_of_all_orders():
    exponents = np.array([0.0, 0.4, 1.3, math.inf])
    accepts = np.exp(-exponents)
    chosen = np.zeros(4)
    for order in itertools.permutations(range(4)):
        missed = 1.0
        for i in order:
            chosen[i] += missed * accepts[i] / 24
            missed *= 1 - accepts[i]
    np.testing.assert_allclose(permute_and_flip_probabilities(exponents), chosen, atol=1e-14)


def test_scores_are_absolute_gaps_and_move_as_these_do():
    # An absolute gap moves by less than one with a sign: 5/8 and not 3/4 for five people.
    asked, spy = question([0, 0, 1, 1, 1], [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 1, 1, 1]]), Spy(System())
    spy.bernoulli_exp = lambda exponents: seen.append(exponents) or System().bernoulli_exp(exponents)
    seen = []
    ExponentialMechanism().release(asked, {}, 2.0, 0.0, spy)
    np.testing.assert_allclose(seen[0], 2.0 / (2 * 5 / 8) * np.array([1 / 6, 0, 2 / 3]), atol=1e-9)


@pytest.mark.check
@pytest.mark.parametrize(("metric", "epsilon"), [("sp", 2.0), ("ppv", 0.3)])
def test_every_choice_among_every_small_batch_costs_at_most_epsilon(epsilon, metric):
    models = list(itertools.product((0.0, 1.0), repeat=4))
    batches = [list(batch) for batch in itertools.combinations(models[1:], 3)]
    worst = 0.0
    for protected, flipped in neighbours(4):
        for batch in batches[::3]:
            p, q = (probabilities(question(a, batch, metric, [0, 1, 0, 1]), epsilon) for a in (protected, flipped))
            found = float(np.abs(np.log(p / q)).max())
            n0 = 4 - sum(protected)
            assert found <= permute_and_flip_gap_loss(metric, n0, 4 - n0, 3, epsilon) * (1 + 1e-12)
            worst = max(worst, found)
    assert worst <= epsilon * (1 + 1e-12)
    assert worst > 0.5 * epsilon


def test_scores_that_all_move_at_once_reach_the_loss_in_closed_form():
    for change in (0.5, 0.3):
        # Scores that no predictions reach: every combination of -1, 0, 1 changes from some start.
        start = np.array([0.0, -0.2, -0.7, -1.4])
        p = permute_and_flip_probabilities(permute_and_flip_exponents(start, 0.5, 1.0))
        losses = []
        for moves in itertools.product((-change, 0.0, change), repeat=4):
            q = permute_and_flip_probabilities(permute_and_flip_exponents(start + moves, 0.5, 1.0))
            losses.append(float(np.abs(np.log(p / q)).max()))
        assert max(losses) == pytest.approx(permute_and_flip_loss(change, 0.5, 4, 1.0)) == pytest.approx(2 * change)


def test_it_chooses_no_worse_than_the_exponential_mechanism():
    generator = np.random.default_rng(0)
    for _ in range(50):
        scores = -generator.random(6)
        exponents = permute_and_flip_exponents(scores, 0.5, 3.0)
        rival = np.exp(-exponents) / np.exp(-exponents).sum()
        assert permute_and_flip_probabilities(exponents) @ scores >= rival @ scores - 1e-12


@pytest.mark.check
@pytest.mark.parametrize(("noise", "runs"), [(Seeded(np.random.default_rng(3)), 20_000), (System(), 4_000)])
def test_draws_follow_the_law(noise, runs):
    # 6 standard errors: a false alarm has probability 2e-9 for each of 8 counts.
    asked = question([0, 0, 1, 1, 1], [[1, 0, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 1, 0, 1]])
    counts = sum(ExponentialMechanism().release(asked, {}, 2.0, 0.0, noise).values for _ in range(runs))
    assert counts.sum() == runs
    p = probabilities(asked, 2.0)
    assert (np.abs(counts - runs * p) <= 6 * np.sqrt(runs * p * (1 - p))).all()


def test_without_a_limit_the_fairest_is_chosen():
    asked = question([0, 0, 1, 1], [[0, 0, 1, 1], [0, 0, 0, 1], [1, 0, 1, 0], [1, 1, 0, 0]])
    for noise in (System(), Seeded(np.random.default_rng(0))):
        values = ExponentialMechanism().release(asked, {}, math.inf, 0.0, noise).values
        np.testing.assert_array_equal(values, [0, 0, 1, 0])


def test_equal_gaps_are_equal_to_the_last_bit():
    # 0.1 + 0.2 differs from 0.3 in float64; without a grid an unlimited epsilon would always choose the same one.
    asked = question([0, 0, 0, 1], [[0.1, 0.2, 0.0, 0.0], [0.3, 0.0, 0.0, 0.0]])
    noise = Seeded(np.random.default_rng(0))
    chosen = {int(ExponentialMechanism().release(asked, {}, 1e6, 0.0, noise).values.argmax()) for _ in range(40)}
    assert chosen == {0, 1}


def test_price_and_refusal():
    mechanism = ExponentialMechanism()
    loss = mechanism.cost(0.7, 1e-6)
    assert (loss.epsilon, loss.delta) == (0.7, 0.0)
    assert mechanism.refuses("di", 1.0, 0.0)
    assert mechanism.refuses("eodds_max", 1.0, 0.0) is None
