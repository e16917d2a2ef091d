"""The sparse vector technique and its broken twins: exact privacy loss, and draws against the law."""

import itertools
import math

import numpy as np
import pytest

from compliance.mechanisms.mechanism import BatchQuestion
from compliance.mechanisms.selection import SparseVectorMechanism
from compliance.noise.sampling import Seeded, System
from compliance.records.people import Records
from fairwall.laws.mechanisms.selection import SparseVectorNoise, sparse_vector
from tests.support.choice_costs import sparse_vector_gap_loss, sparse_vector_loss
from tests.twins.sparse_vector import Chen, LeeClifton, RothNotes, Stoddard

EPSILON = 1.0


def question(protected, predictions, metric="sp"):
    labels = np.zeros(len(protected), np.uint8)
    records = Records(labels, np.array(protected, np.uint8), (metric,))
    return BatchQuestion(metric, np.array(predictions, np.float64), records)


def worst_neighbours(half):
    """Two neighbours and a batch whose first half falls by the sensitivity to 0, while the second half rises by it."""
    falling, rising = [1 / 3, 1, 0, 0], [1, 0, 1, 0]
    batch = [falling] * half + [rising] * half
    return question([0, 0, 1, 1], batch, "abs_sp"), question([0, 1, 1, 1], batch, "abs_sp")


def outcomes(models, positives):
    """All that can be answered: all models, or up to the last allowed yes."""
    for length in range(1, models + 1):
        for answers in itertools.product((False, True), repeat=length):
            yeses = sum(answers)
            if (yeses == positives and answers[-1]) or (length == models and (positives is None or yeses < positives)):
                yield answers


def exact_loss(law, one, other):
    """The largest log-ratio of the probabilities of any answers, either way round."""
    worst = 0.0
    for answers in outcomes(len(one), law.positives):
        p, q = law.probability(one, answers), law.probability(other, answers)
        if max(p, q) < 1e-12:  # below the quadrature's own error
            continue
        worst = max(worst, math.inf if min(p, q) == 0 else abs(math.log(p / q)))
    return worst


def test_probabilities_add_up_to_1():
    law = sparse_vector(0.1, 0.6, 2, EPSILON)
    gaps = np.array([0.0, 0.3, 0.7, 0.1, 0.9])
    assert math.isclose(sum(law.probability(gaps, answers) for answers in outcomes(5, 2)), 1, abs_tol=1e-12)


def test_the_scales_cost_epsilon_and_split_it_best():
    for c, epsilon in itertools.product((1, 3, 20), (0.1, 1.0, 10.0)):
        law = sparse_vector(0.0, 1.0, c, epsilon)
        assert math.isclose(1 / law.threshold_scale + 2 * c / law.query_scale, epsilon)
        variance = law.threshold_scale**2 + law.query_scale**2
        for share in np.linspace(0.02, 0.98, 49):
            assert (1 / (share * epsilon)) ** 2 + (2 * c / ((1 - share) * epsilon)) ** 2 >= variance * (1 - 1e-12)


@pytest.mark.few(1)
@pytest.mark.parametrize("positives", [1, 2])
def test_no_outcome_in_any_small_world_costs_more_than_epsilon(positives):
    # All attributes of four people, all flips that empty no group, and all batches of two 0/1 models beside two others.
    mechanism = SparseVectorMechanism(threshold=0.2, positives=positives)
    models = np.array(list(itertools.product((0.0, 1.0), repeat=4)))
    worst = 0.0
    for protected in itertools.product((0, 1), repeat=4):
        n0 = 4 - sum(protected)
        for person in range(4):
            flipped = [a ^ (i == person) for i, a in enumerate(protected)]
            if protected[person] or not (sum(protected) > 0 and sum(flipped) < 4):
                continue
            one, other = (np.abs(question(a, models).gaps()) for a in (protected, flipped))
            law = mechanism.law(question(protected, models, "abs_sp").sensitivities().overall, EPSILON)
            rising, falling = np.argmax(other - one), np.argmax(one - other)
            for batch in ([rising, falling], [falling, rising], [rising, rising, falling], [falling, falling, rising]):
                found = exact_loss(law, one[batch], other[batch])
                assert found <= sparse_vector_gap_loss("sp", n0, 4 - n0, positives, EPSILON) * (1 + 1e-9)
                worst = max(worst, found)
    assert 0.25 * EPSILON < worst <= EPSILON * (1 + 1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize(("positives", "epsilon", "part"), [(3, 2.0, 1.0), (2, 10.0, 0.6)])
def test_the_loss_in_closed_form_is_reached_by_large_batches(positives, epsilon, part):
    # Noes to gaps that fall, then yeses to gaps that rise; all by a part of the sensitivity.
    law, noes = sparse_vector(0.1, 0.5, positives, epsilon), 4_000
    change = part * 0.5
    one = np.repeat([change, 0.0], [noes, positives])
    p, q = (law.probability(gaps, (False,) * noes + (True,) * positives) for gaps in (one, change - one))
    closed = sparse_vector_loss(law, change)
    assert math.isclose(closed, part * epsilon)
    assert math.isclose(abs(math.log(p / q)), closed, rel_tol=1e-3)


@pytest.mark.few(1)
@pytest.mark.parametrize("twin", [RothNotes, LeeClifton, Stoddard, Chen])
def test_the_broken_twins_cost_more_than_epsilon_where_the_sound_one_does_not(twin):
    half = 200
    one, other = worst_neighbours(half)
    sensitivity = one.sensitivities().overall
    one, other = one.gaps(), other.gaps()
    np.testing.assert_allclose(other - one, [-sensitivity] * half + [sensitivity] * half)

    def loss(mechanism, noes):
        """The sharpest outcome: noes where gaps fall, and then as many yeses as can be where they rise."""
        law = mechanism.law(sensitivity, EPSILON)
        kept = slice(half - noes, half + mechanism.positives)
        answers = (False,) * noes + (True,) * mechanism.positives
        p, q = (law.probability(gaps[kept], answers) for gaps in (one, other))
        return math.inf if min(p, q) < 1e-14 < 1e-6 < max(p, q) else abs(math.log(p / q))

    def worst(kind):
        cases = itertools.product((0.3, 3.0, 8.0), (1, 5), (5, 200))
        return max(loss(kind(threshold, positives), noes) for threshold, positives, noes in cases)

    assert 0.9 * EPSILON < worst(SparseVectorMechanism) <= EPSILON * (1 + 1e-9)
    assert worst(twin) > 1.3 * EPSILON


@pytest.mark.check
def test_draws_follow_the_law():
    # 32 outcomes at most; each count is binomial, and a deviation of 6 standard errors has probability 2e-9.
    asked = question([0, 0, 1, 1, 1], [[1, 0, 1, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 1, 1], [0, 1, 1, 0, 1]])
    mechanism = SparseVectorMechanism(threshold=0.2, positives=2)
    law = mechanism.law(question([0, 0, 1, 1, 1], asked.predictions, "abs_sp").sensitivities().overall, EPSILON)
    noise, runs = Seeded(np.random.default_rng(2)), 20_000
    seen: dict[tuple[bool, ...], int] = {}
    for _ in range(runs):
        values = mechanism.release(asked, {}, EPSILON, 0.0, noise).values
        answers = tuple(values[~np.isnan(values)] == 1)
        seen[answers] = seen.get(answers, 0) + 1
    expected = {a: law.probability(np.abs(asked.gaps()), a) for a in outcomes(4, 2)}
    assert set(seen) <= set(expected)
    for answers, p in expected.items():
        assert abs(seen.get(answers, 0) - runs * p) <= 6 * math.sqrt(runs * p * (1 - p)) + 6


def test_it_stops_after_the_last_allowed_yes():
    asked = question([0, 0, 1, 1], [[0, 0, 1, 1]] * 5)
    values = SparseVectorMechanism(0.5, 2).release(asked, {}, math.inf, 0.0, System()).values
    np.testing.assert_array_equal(values, [1, 1, np.nan, np.nan, np.nan])


def test_the_system_noise_answers_a_clear_case():
    asked = question([0] * 500 + [1] * 500, [[0] * 500 + [1] * 500, [1] * 1000])
    values = SparseVectorMechanism(0.5, 2).release(asked, {}, 1000.0, 0.0, System()).values
    np.testing.assert_array_equal(values, [1, 0])


def test_a_metric_without_limit_is_refused():
    assert SparseVectorMechanism().refuses("di", 1.0, 0.0)
    assert SparseVectorMechanism().refuses("ppv", 1.0, 0.0) is None
    with pytest.raises(ValueError, match="di"):
        SparseVectorMechanism().release(question([0, 0, 1], [[1, 1, 1]], "di"), {}, 1.0, 0.0, System())


def test_parameters_out_of_range_are_refused():
    for bad in ({"positives": 0}, {"threshold": math.nan}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            SparseVectorMechanism(**bad)


def test_the_price_is_epsilon():
    loss = SparseVectorMechanism().cost(0.7, 1e-6)
    assert (loss.epsilon, loss.delta) == (0.7, 0.0)


def test_no_noise_on_the_queries_is_a_law_too():
    law = SparseVectorNoise(0.0, 1.0, 0.0, None)
    assert math.isclose(law.probability(np.array([0.0]), (True,)), 0.5, abs_tol=1e-12)


def test_a_gap_at_the_threshold_is_a_yes_without_noise():
    asked = question([0, 0, 1, 1], [[0, 0, 1, 0], [0, 0, 1, 1], [0, 0, 0, 0]])
    for threshold, answers in ((0.5, [1, 1, 0]), (0.0, [1, 1, 1])):
        mechanism = SparseVectorMechanism(threshold=threshold)
        assert mechanism.release(asked, {}, math.inf, 0.0, System()).values.tolist() == answers


def test_a_law_without_a_yes_is_refused():
    for positives in (0, -1):
        with pytest.raises(ValueError, match="positives must be at least 1"):
            sparse_vector(0.1, 0.5, positives, EPSILON)
