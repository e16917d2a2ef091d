"""Sample and aggregate: the sensitivity of a block by enumeration, the noise, and what it is worth."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from compliance.mechanisms.mechanism import BatchQuestion
from compliance.mechanisms.sample_and_aggregate import SampleAndAggregate, block_gaps, deal
from compliance.noise.sampling import Seeded, System
from compliance.records.people import Records
from fairwall.laws.mechanisms.calibration import aggregate_law, aggregate_loss, block_count
from fairwall.laws.metrics.metric import METRICS, find_metric
from tests.support.noise_sources import Spy

BOUNDED = [name for name, metric in METRICS.items() if metric.bounded]


def audit(n, metric="sp", seed=0):
    generator = np.random.default_rng(seed)
    labels = generator.random(n) < 0.7  # strata of unlike sizes
    protected = np.arange(n) % 5 != 0
    records = Records(labels.astype(np.uint8), protected.astype(np.uint8), (metric,))
    return BatchQuestion(metric, (generator.random((4, n)) < 0.3 + 0.3 * protected).astype(np.float64), records)


@pytest.mark.few(2)
@pytest.mark.parametrize("metric", ["sp", "abs_eo", "eodds_sum", "ppv"])
def test_one_flip_moves_a_block_by_at_most_1_whatever_groups_are_empty(metric):
    # All labels, attributes, flips and 0/1 predictions of blocks of up to four people, and 1 is reached.
    worst = 0.0
    for n in (1, 2, 3, 4):
        predictions = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
        for labels in itertools.product((0, 1), repeat=n):
            gaps = {}
            for protected in itertools.product((0, 1), repeat=n):
                records = Records(np.array(labels, np.uint8), np.array(protected, np.uint8), ())
                gaps[protected] = block_gaps(BatchQuestion(metric, predictions, records), np.arange(n))
            for protected, person in itertools.product(gaps, range(n)):
                flipped = tuple(a ^ (i == person) for i, a in enumerate(protected))
                # Over all gaps of the metric together: one flip moves one of them.
                worst = max(worst, float(np.abs(gaps[protected] - gaps[flipped]).sum(axis=0).max()))
    assert worst == 1.0


def test_people_are_dealt_out_once_and_evenly_by_label():
    labels = (np.arange(103) < 31).astype(np.uint8)
    for noise in (Seeded(np.random.default_rng(0)), System()):
        dealt = deal(labels, 5, noise)
        assert sorted(np.concatenate(dealt)) == list(range(103))
        for label in (0, 1):
            sizes = [np.count_nonzero(labels[people] == label) for people in dealt]
            assert max(sizes) - min(sizes) <= 1


def test_everybody_is_as_often_in_every_block():
    # Each count at 6 standard errors: 30 false alarms of probability 2e-9.
    labels, noise, deals = np.array([0] * 7 + [1] * 3, np.uint8), Seeded(np.random.default_rng(4)), 900
    counts = np.zeros((3, 10))
    for _ in range(deals):
        for block, people in enumerate(deal(labels, 3, noise)):
            counts[block, people] += 1
    # Whoever of seven comes first, fourth or seventh is in the first block, and of three the second is.
    shares = np.array([[3 / 7] * 7 + [1 / 3] * 3, *[[2 / 7] * 7 + [1 / 3] * 3] * 2])
    assert (np.abs(counts - deals * shares) <= 6 * np.sqrt(deals * shares * (1 - shares))).all()


def test_the_smallest_stratum_says_how_many_blocks_there_are():
    labels = (np.arange(200) < 70).astype(np.uint8)
    blocks = {
        metric: SampleAndAggregate(block_size=10).blocks(metric, labels) for metric in ("sp", "eo", "fpr", "eodds_max")
    }
    assert blocks == {"sp": 20, "eo": 7, "fpr": 13, "eodds_max": 7}


def test_the_blocks_do_not_depend_on_the_attributes():
    asked = audit(200)
    others = Records(asked.records.labels, 1 - asked.records.protected, asked.records.metrics)
    mechanism = SampleAndAggregate()
    assert mechanism.blocks("sp", asked.records.labels) == 6
    one, other = (
        mechanism.release(replace(asked, records=records), {}, math.inf, 0.0, Seeded(np.random.default_rng(1))).values
        for records in (asked.records, others)
    )
    # The same blocks: turning everybody over turns every gap over.
    np.testing.assert_allclose(one, -other)


def test_one_block_and_no_limit_give_the_metric_itself():
    for metric in BOUNDED:
        asked = audit(50, metric)
        values = SampleAndAggregate(block_size=50).release(asked, {}, math.inf, 0.0, System()).values
        np.testing.assert_allclose(values, asked.gaps(), atol=1e-15)


@pytest.mark.few(1)
@pytest.mark.parametrize("metric", ["sp", "eodds_sum"])
def test_the_noise_is_that_of_the_law(metric):
    # Kolmogorov and Smirnov on 4,000 draws at 1e-7; one block, so that the mean does not depend on the deal.
    from scipy.stats import kstest, laplace

    asked = audit(50, metric)
    mechanism = SampleAndAggregate(block_size=50)
    noise, law = Seeded(np.random.default_rng(2)), mechanism.law(metric, asked.records.labels, 4, 3.0)
    assert law.scale == 4 / 3
    if find_metric(metric).absolute:
        asked = replace(asked, metric="sp")
    draws = np.array([mechanism.release(asked, {}, 3.0, 0.0, noise).values - asked.gaps() for _ in range(1_000)])
    assert kstest(draws.ravel(), laplace(scale=law.scale).cdf).pvalue > 1e-7


@pytest.mark.parametrize("metric", ["eo", "eodds_sum"])
def test_the_noise_is_on_all_means_of_a_batch_together(metric):
    epsilon, asked, spy = 2.0, audit(103, metric), Spy(Seeded(np.random.default_rng(1)))
    mechanism = SampleAndAggregate(block_size=10)
    mechanism.release(asked, {}, epsilon, 0.0, spy)
    (drawn,) = spy.asked
    moves = drawn.scale * epsilon / asked.queries - 1 / mechanism.blocks(metric, asked.records.labels)
    # Rounding both neighbours may move them a step apart, and float64 another one.
    assert moves == pytest.approx(2 * drawn.step, rel=1e-6)


def test_batches_of_neighbours_are_at_most_epsilon_apart_in_the_law():
    # Conditional on the deal, the means move by at most m/k in the L1 norm: all flips of a small data set.
    asked = audit(24, "eodds_sum")
    mechanism = SampleAndAggregate(block_size=4)
    blocks = mechanism.blocks("eodds_sum", asked.records.labels)
    scale = mechanism.law("eodds_sum", asked.records.labels, 4, 1.0).scale
    dealt = deal(asked.records.labels, blocks, Seeded(np.random.default_rng(0)))
    assert blocks >= 2

    def means(protected):
        records = Records(asked.records.labels, protected, ())
        return np.mean([block_gaps(replace(asked, records=records), people) for people in dealt], axis=0)

    exact = means(asked.records.protected)
    for person in range(24):
        flipped = asked.records.protected.copy()
        flipped[person] ^= 1
        assert np.abs(means(flipped) - exact).sum() / scale <= 1 + 1e-12


@pytest.mark.few(1)
@pytest.mark.parametrize(("n", "block_size"), [(4, 2), (5, 2)])
def test_the_loss_in_closed_form_is_that_of_the_worst_deal_attributes_and_predictions(n, block_size):
    blocks, epsilon = block_count(n, block_size), 0.7
    predictions = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    labels, scale = np.zeros(n, np.uint8), aggregate_law(blocks, 1, epsilon).scale
    deals = [[np.array(order[first::blocks]) for first in range(blocks)] for order in itertools.permutations(range(n))]

    def means(protected, dealt):
        asked = BatchQuestion("sp", predictions, Records(labels, np.array(protected, np.uint8), ("sp",)))
        return np.mean([block_gaps(asked, people) for people in dealt], axis=0)

    worst = dict.fromkeys(range(1, n), 0.0)
    # Whoever flips may be called person 0, and who is disadvantaged else the next ones: all deals are tried.
    for n0 in range(2, n):
        here, there = [0] * n0 + [1] * (n - n0), [1] + [0] * (n0 - 1) + [1] * (n - n0)
        found = max(float(np.abs(means(here, dealt) - means(there, dealt)).max()) / scale for dealt in deals)
        worst[n0], worst[n0 - 1] = max(worst[n0], found), max(worst[n0 - 1], found)
    for n0, found in worst.items():
        assert found == pytest.approx(aggregate_loss("sp", n0, n - n0, 1, epsilon, block_size))


def test_price_refusal_and_parameters():
    mechanism = SampleAndAggregate()
    loss = mechanism.cost(0.7, 1e-6)
    assert (loss.epsilon, loss.delta) == (0.7, 0.0)
    assert mechanism.refuses("di", 1.0, 0.0)
    with pytest.raises(ValueError, match="block"):
        SampleAndAggregate(block_size=1)
