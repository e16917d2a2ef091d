"""What answers can make of an audited gap: bounds against brute force in small worlds."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from fairwall.laws.noise.count_noise import laplace_scales
from fairwall.laws.studies.overfitting import (
    _of_coins,
    bound,
    entropy,
    expected_gap,
    told_by_counts,
    told_by_laplace,
    told_by_private,
)

RNG = np.random.default_rng(5)


def information(joint: NDArray[np.float64]) -> float:
    """The mutual information of a table of probabilities, in nats."""
    apart = joint.sum(axis=1, keepdims=True) * joint.sum(axis=0, keepdims=True)
    some = joint > 0
    return float((joint[some] * np.log(joint[some] / apart[some])).sum())


def test_entropy_is_that_of_a_coin() -> None:
    assert entropy(np.array([0.0, 0.5, 1.0])).tolist() == pytest.approx([0, math.log(2), 0])
    p = np.array([0.1, 0.3])
    assert entropy(p).tolist() == pytest.approx((-p * np.log(p) - (1 - p) * np.log(1 - p)).tolist())


@pytest.mark.parametrize("epsilon", [0.1, 4.0])
def test_no_private_channel_tells_more_than_randomised_response(epsilon: float) -> None:
    for share in (0.1, 0.35, 0.5):
        most = told_by_private(np.array([share]), epsilon)
        true = 1 / (1 + math.exp(-epsilon))
        told = information(
            np.array([[share * true, share * (1 - true)], [(1 - share) * (1 - true), (1 - share) * true]])
        )
        assert most == pytest.approx(told), "randomised response reaches it"
        for _ in range(200):  # channels with four answers, whose ratios are anything up to e^epsilon
            first = RNG.dirichlet(np.ones(4))
            ratio = np.exp(RNG.uniform(-epsilon / 2, epsilon / 2, 4))
            second = first * ratio / (first * ratio).sum()
            assert np.abs(np.log(second / first)).max() <= epsilon
            assert information(np.stack([share * first, (1 - share) * second])) <= most + 1e-12


def test_private_answers_tell_at_most_all_and_without_a_budget_nothing() -> None:
    shares = np.array([0.1, 0.5, 0.9])
    assert told_by_private(shares, math.inf) == pytest.approx(entropy(shares).sum())
    assert told_by_private(shares, 1e-9) == pytest.approx(0, abs=1e-12)


def test_a_sum_with_laplace_noise_tells_no_more() -> None:
    """Against the integral, for binomial sums."""
    for people, share, scale in ((1, 0.3, 0.2), (12, 0.1, 1.0), (40, 0.5, 5.0)):
        counts = np.arange(people + 1)
        chance = np.array([math.comb(people, k) * share**k * (1 - share) ** (people - k) for k in counts])
        step = scale / 200
        at = np.arange(-30 * scale, people + 30 * scale, step)
        density = np.exp(-np.abs(at - counts[:, np.newaxis]) / scale) / (2 * scale)
        mixed = chance @ density
        told = float((chance[:, np.newaxis] * density * np.log(density / mixed)).sum() * step)
        most = told_by_laplace(people * share * (1 - share), scale)
        assert told - 1e-3 <= most
        assert most <= told + 0.5, "and not by much"


def test_counts_tell_what_their_numbers_tell_and_n0_once() -> None:
    shares, known = np.array([0.1, 0.4, 0.4]), laplace_scales(5, 0.5, size_known=True)
    first = laplace_scales(2, 1.0)
    variance = 0.09 + 2 * 0.24
    own = told_by_laplace(variance, first.size) + 2 * told_by_laplace(variance / 4, first.sums)
    assert told_by_counts(shares, [(2, 1.0)]) == pytest.approx(own)
    assert told_by_counts(shares, [(2, 1.0), (5, 0.5)]) == pytest.approx(
        own + 5 * told_by_laplace(variance / 4, known.sums)
    )


def gap(decisions: NDArray[np.float64], few: NDArray[np.bool_]) -> float:
    return float(decisions[~few].mean() - decisions[few].mean())


def test_the_gap_that_is_expected_is_that_of_all_ways_to_draw_the_disadvantaged() -> None:
    sizes, few = np.array([5, 4, 7]), np.array([2, 1, 3])
    cells, decisions = np.array([0, 0, 0, 1, 1, 2]), np.array([1, 0, 0, 1, 1, 0], np.uint8)
    # Each cell's rows of the table, the first of them disadvantaged; every choice of audited ones is as likely.
    tables = [np.arange(size) < number for size, number in zip(sizes, few, strict=True)]
    drawn = [list(itertools.permutations(table, int((cells == cell).sum()))) for cell, table in enumerate(tables)]
    found = []
    for parts in itertools.product(*drawn):
        of_cell = np.concatenate([np.array(part, bool) for part in parts])
        if 0 < of_cell.sum() < len(of_cell):
            found.append(gap(decisions, of_cell))
    redrawn = [expected_gap(decisions, cells, sizes, few, np.random.default_rng(seed)) for seed in range(20)]
    means, constants = zip(*redrawn, strict=True)
    exact = float(np.std(found))
    assert np.mean(means) == pytest.approx(np.mean(found), abs=5 * exact / math.sqrt(20_000))
    assert min(constants) > exact, "a variance is never above a sub-Gaussian constant"


def test_of_a_table_that_is_audited_whole_the_gap_is_known() -> None:
    """No row is drawn twice: where all of a cell's rows are audited, its number of disadvantaged ones is certain."""
    cells, decisions = np.array([0] * 5 + [1] * 7), np.array([1] * 5 + [0] * 7, np.uint8)
    mean, _ = expected_gap(decisions, cells, np.array([5, 7]), np.array([2, 4]), np.random.default_rng(0))
    assert mean == pytest.approx(3 / 6 - 2 / 6, abs=1e-12)


@pytest.mark.parametrize("p", [1e-6, 0.01, 0.3, 0.49999, 0.5, 0.9])
def test_a_coin_is_sub_gaussian_with_its_constant_and_with_nothing_less(p: float) -> None:
    (square,) = _of_coins(np.array([p]))
    grow = np.linspace(-60, 60, 24_001)
    grow = grow[np.abs(grow) > 1e-2]
    # ln E exp(lambda (1 - p)) and exp(-lambda p), added up without overflow.
    logs = np.logaddexp(math.log(p) + grow * (1 - p), math.log1p(-p) - grow * p)
    least = (2 * logs / grow**2).max()
    assert least <= square * (1 + 1e-6)
    assert square == pytest.approx(least, rel=1e-3)
    assert _of_coins(np.array([0.0, 1.0])).tolist() == [0, 0]


def test_one_patch_of_who_is_hardly_ever_disadvantaged_stays_within_the_bound() -> None:
    """A hundred rows, one in a hundred disadvantaged: exact answers name one, and the patch turns that one's decision.

    The broken twin: the gap's standard deviation, which is too small for what moves it seldom, and then far.
    """
    rows, p, rng = 100, 0.01, np.random.default_rng(3)
    decisions, cells = np.eye(rows, dtype=np.uint8)[0], np.zeros(rows, np.intp)
    mean, constant = expected_gap(decisions, cells, np.array([10**7]), np.array([10**5]), rng)
    n0 = rng.binomial(rows, p, 100_000)
    n0 = n0[n0 > 0]
    # The row that is turned is one of the disadvantaged.
    made = mean + float((1 / n0).mean())
    nats = rows * float(entropy(np.array(p)))
    one = rng.random(len(n0)) < n0 / rows
    deviation = float(np.where(one, -1 / n0, 1 / (rows - n0)).std())
    assert bound(deviation, nats) < 0.6 * made
    assert made <= bound(constant, nats) < 2 * made


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_in_a_small_world_patches_after_answers_stay_within_the_bound(noise: float) -> None:
    """Everything is added up: groups of seven people, answers to two models, and the best patch after each."""
    n, shares = 7, np.array([0.2, 0.2, 0.4, 0.4, 0.5, 0.3, 0.1])
    base = np.array([1, 0, 1, 0, 0, 1, 0], float)
    worlds = [np.array(world) for world in itertools.product((True, False), repeat=n) if 0 < sum(world) < n]
    chance = np.array([np.where(world, shares, 1 - shares).prod() for world in worlds])
    chance /= chance.sum()
    patched = [np.abs(base - np.eye(n)[list(pair)].sum(axis=0)) for pair in itertools.combinations(range(n), 2)]
    gaps = np.array([[gap(decisions, world) for world in worlds] for decisions in patched])
    mean = gaps @ chance
    deviation = np.sqrt((gaps**2) @ chance - mean**2).max()
    exact = [(world[:4].sum(), world[::2].sum()) for world in worlds]
    answers = sorted(set(exact))
    # An answer is another one, whichever, with this probability.
    channel = np.array([[(one == true) * (1 - noise) + noise / len(answers) for one in answers] for true in exact])
    joint = chance[:, np.newaxis] * channel
    made = 0.0
    for answer in range(len(answers)):
        posterior = joint[:, answer]
        made += float((mean[:, np.newaxis] - gaps).dot(posterior).max())
    most = bound(float(deviation), information(joint))
    assert 0.2 * most < made <= most
