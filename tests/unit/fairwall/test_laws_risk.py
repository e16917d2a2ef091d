"""Who is worst off: every mechanism in small worlds, 10^5 simulated people at each epsilon, and what is kept of games.

**Never above.** Of N people whom a test names, half of all people being disadvantaged, independently, those who are are
at most Binomial(N, e^eps / (1 + e^eps)), whatever the test: that is the posterior's guarantee where sizes of groups are
not known. An exact binomial test refuses more at a false-alarm rate of 10^-6 for each threshold.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import binom

from fairwall.laws.choice.cell_partition import cells_scale, least_people
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.privacy.exposure import one_person, revealed
from fairwall.laws.privacy.most_exposed import FALSE, Sure, aimed, limit, named, named_by_look
from fairwall.laws.privacy.single_person_tests import look_at_cells, look_at_response, told_apart

EPSILONS = (0.1, 0.5, 1.0, 3.0, 5.0, 10.0)
PEOPLE, CELL = 100_000, 10
ALARM = 1e-6
PROTECTED = (np.arange(PEOPLE) % 2).astype(np.uint8)
Array = NDArray[np.float64]


def geometric(rng: np.random.Generator, epsilon: float, size: int = PEOPLE) -> Array:
    return (rng.geometric(1 - math.exp(-epsilon), size) - rng.geometric(1 - math.exp(-epsilon), size)).astype(float)


def response(rng: np.random.Generator, epsilon: float) -> Array:
    """Randomised response: the log-odds that somebody is disadvantaged, for each person."""
    turned = rng.random(PEOPLE) < 1 / (1 + math.exp(epsilon))
    return np.where((PROTECTED == 0) ^ turned, epsilon, -epsilon)


def counted(rng: np.random.Generator, epsilon: float) -> Array:
    """A count of one person, or of a group of whom everybody else is known, with geometric noise."""
    return np.where((PROTECTED == 0) + geometric(rng, epsilon) >= 1, epsilon, -epsilon)


def in_cells(rng: np.random.Generator, epsilon: float) -> Array:
    """A person in a cell of ten, of whom nobody else is known: the exact posterior of the noisy count."""
    z = (PROTECTED == 0).astype(float)
    seen = z + rng.binomial(CELL - 1, 0.5, PEOPLE) + geometric(rng, epsilon)
    noise = np.arange(-400, 401)
    law = np.exp(-epsilon * np.abs(noise))
    others = binom.pmf(np.arange(CELL), CELL - 1, 0.5)
    # One more of them, or none: the law of what is seen is that of the same sum, moved by one.
    both = np.convolve(law, others)
    place = np.clip(seen + 400, 1, len(both) - 1).astype(int)
    return np.asarray(np.log(np.maximum(both[place - 1], 1e-300) / np.maximum(both[place], 1e-300)))


def most_named(n: int, n0: int | None, epsilon: float, delta: float, false: float) -> float:
    """How often the best of all mechanisms names one person, with a false positive rate: a linear program.

    Its variables are how probable the name is for each of the attributes that people may have: no attack needs more of
    an answer. N0 is known, or everybody's attribute is tossed.
    """
    from scipy.optimize import linprog

    worlds = np.array(list(itertools.product((0, 1), repeat=n)))
    # Whoever is flipped is another power of two of a world's place.
    places, others = (np.repeat(np.arange(2**n), n), (np.arange(2**n)[:, np.newaxis] ^ 2 ** np.arange(n)).ravel())
    one, other = np.eye(2**n)[places], np.eye(2**n)[others]
    factor = math.exp(epsilon)
    limits = np.concatenate([one - factor * other, factor * other - one])
    # That nobody is named is private too: 1 - p <= e^eps (1 - q) + delta.
    bounds = np.repeat([delta, factor - 1 + delta], len(one))
    may_be = np.full(2**n, True) if n0 is None else worlds.sum(axis=1) == n0
    named, wrongly = (may_be * (worlds[:, 0] == z) / (may_be * (worlds[:, 0] == z)).sum() for z in (1, 0))
    solved = linprog(-named, limits, bounds, wrongly[np.newaxis], [false], bounds=(0, 1))
    assert solved.status == 0
    return float(-solved.fun)


SMALL = [(n, n0) for n in (2, 3, 5, 8) for n0 in sorted({1, n // 2, n - 1})]


@pytest.mark.parametrize("delta", [0.0, 0.001])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_no_mechanism_names_one_person_more_often(epsilon: float, delta: float) -> None:
    """All of them and all attacks, where sizes of groups are known and where not; the limit is reached."""
    for n, n0 in SMALL:
        for false in (FALSE, 0.02, 0.3):
            found = most_named(n, n0, epsilon, delta, false)
            assert found <= limit(epsilon, delta, false) + 1e-7, (n, n0, false)
            assert (found + 1 - false) / 2 <= one_person(epsilon, delta) + 1e-7, (n, n0, false)
            if (n, n0) == (2, 1):
                # The broken twin, e^eps of the share: what one flip allows.
                assert found > math.exp(epsilon) * false + delta + 1e-5 or false > FALSE
    for n in (2, 5):
        assert most_named(n, None, epsilon, delta, FALSE) <= math.exp(epsilon) * FALSE + delta + 1e-7
    assert most_named(5, 2, epsilon, delta, FALSE) == pytest.approx(limit(epsilon, delta, FALSE))


def by_enumeration(n: int, n0: int, epsilon: float) -> tuple[float, float]:
    """How often one person's group is named right after randomised response of everybody, and at `FALSE`."""
    kept = 1 / (1 + math.exp(-epsilon))
    seen = np.array(list(itertools.product((0, 1), repeat=n)))
    of_one, of_zero = (
        np.mean(
            [
                np.prod(np.where(seen == np.array(world), kept, 1 - kept), axis=1)
                for world in itertools.product((0, 1), repeat=n)
                if sum(world) == n0 and world[0] == z
            ],
            axis=0,
        )
        for z in (1, 0)
    )
    order = np.argsort(-of_one / of_zero)
    return 0.5 + np.abs(of_one - of_zero).sum() / 4, named(of_one[order], of_zero[order])


@pytest.mark.parametrize("epsilon", [0.3, 2.0, 6.0])
def test_randomised_response_tells_more_where_the_sizes_of_groups_are_known(epsilon: float) -> None:
    for n, n0 in SMALL:
        right, share = by_enumeration(n, n0, epsilon)
        look = look_at_response(n, n0, epsilon)
        assert (told_apart([look]), named_by_look(look)) == (pytest.approx(right), pytest.approx(share))
        assert right == pytest.approx(revealed("randomized-response", "sp", n, 1, epsilon))
    assert aimed("randomized-response", "sp", 8, epsilon, shares=Shares(0.5, 0.5)) == pytest.approx(
        by_enumeration(8, 4, epsilon)[1]
    )
    # Of more people it is looked at as of 10,000: their number tells the less, the more there are.
    many = [aimed("randomized-response", "sp", n, epsilon) for n in (1000, 10_000, 1_000_000)]
    assert many[2] == pytest.approx(many[1])
    assert FALSE < many[1] < many[0]


ATTACKS = {"response": response, "counted": counted, "cells": in_cells}


def is_above(ratio: Array, epsilon: float) -> bool:
    """Say whether more are named rightly than epsilon allows, at any of some thresholds."""
    for threshold in np.unique(np.quantile(ratio, (0.5, 0.9, 0.99, 0.999, 1.0))):
        hits = int((ratio[PROTECTED == 0] >= threshold).sum())
        false = int((ratio[PROTECTED == 1] >= threshold).sum())
        if binom.sf(hits - 1, hits + false, 1 / (1 + math.exp(-epsilon))) < ALARM:
            return True
    return False


def measured(ratio: Array) -> float:
    order = -np.unique(-ratio)
    counts = [np.array([(ratio[group == PROTECTED] == at).sum() for at in order], float) for group in (0, 1)]
    return named(*counts)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("attack", ATTACKS)
def test_nobody_is_known_better_than_epsilon_allows(attack: str, epsilon: float) -> None:
    ratio = ATTACKS[attack](np.random.default_rng(17), epsilon)
    assert np.abs(ratio).max() <= epsilon * (1 + 1e-9), "an exact posterior moves no odds further"
    assert not is_above(ratio, epsilon)
    # Five deviations of a Poisson number, the 50 advantaged who may be named.
    assert measured(ratio) <= limit(epsilon / 2) * (1 + 5 / math.sqrt(FALSE * PEOPLE / 2))


def test_the_worst_case_reaches_what_epsilon_allows() -> None:
    for epsilon in (0.5, 3.0, 10.0):
        for attack in ("response", "counted"):
            ratio = ATTACKS[attack](np.random.default_rng(18), epsilon)
            hits, false = ((ratio[group == PROTECTED] > 0).sum() for group in (0, 1))
            if epsilon < 10:
                assert hits / (hits + false) == pytest.approx(1 / (1 + math.exp(-epsilon)), abs=0.01)
                assert measured(ratio) == pytest.approx(limit(epsilon / 2), rel=0.15)
            else:
                # e^-10 of 50,000 people is 2: the limit to whom a test misses, not to whom it names wrongly, is near.
                assert hits / (PEOPLE / 2) >= 0.9999 - 0.0007


def test_half_of_the_noise_is_too_little() -> None:
    """The broken twin: whoever knows nobody else's group may miss it, and nobody can tell it from two who are wrongly
    named, as many as e^-10 of 50,000.
    """
    for epsilon in (0.1, 5.0):
        for attack in ("response", "counted"):
            assert is_above(ATTACKS[attack](np.random.default_rng(19), 2 * epsilon), epsilon)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_what_is_told_beforehand_is_what_the_exact_posterior_names(epsilon: float) -> None:
    told = {name: aimed(name, "sp", 1000, epsilon, shares=Shares(0.5, 0.5)) for name in ("counts", "cells", "laplace")}
    told["cube"] = aimed("cube", "sp", 1000, epsilon, shares=Shares(0.5, 0.5))
    assert told["laplace"] <= told["counts"] <= told["cube"] <= limit(epsilon)
    assert told["cube"] >= 0.4 * limit(epsilon)
    if least_people(epsilon) == CELL:
        # Who are the others in the cell is known no better there than here.
        drawn = measured(in_cells(np.random.default_rng(20), 1 / cells_scale(epsilon)))
        assert told["cells"] == pytest.approx(drawn, rel=0.3)


def test_the_limit_is_that_of_both_errors() -> None:
    assert limit(1.0) == pytest.approx(math.e**2 / 1000)
    assert limit(1.0, 0.01) == pytest.approx(math.e**2 / 1000 + (1 + math.e) * 0.01)
    # Where all but 1 / (1 + e^(2 eps)) are named, with as many wrongly, both limits are met.
    turned = 1 / (1 + math.exp(2.0))
    assert limit(1.0, false=turned) == pytest.approx(1 - turned) == pytest.approx(one_person(1.0))
    assert limit(1.0, false=2 * turned) == pytest.approx(1 - math.exp(-2) * (1 - 2 * turned))
    assert limit(math.inf) == limit(0.0, false=1.0) == 1.0
    assert limit(0.0) == pytest.approx(FALSE)


def test_between_two_of_those_named_a_part_is_taken() -> None:
    # Nobody wrongly among the first; of the next a fifth.
    assert named(np.array([3.0, 5.0, 2.0]), np.array([0.0, 5.0, 995.0]), 0.001) == pytest.approx(0.3 + 0.5 / 5)
    assert named(np.array([1.0]), np.array([1.0]), 0.001) == pytest.approx(0.001)
    assert named(np.array([0.0, 1.0]), np.array([1.0, 0.0]), 1.0) == 1.0
    look = look_at_cells(100, 50, 10, 1.0)
    assert named_by_look(look, 0.999999) > 0.99


def test_what_was_played_is_counted_by_how_sure_it_was() -> None:
    sure = Sure.of(np.array([1.0, 0.0, 0.5, 0.9]), np.array([0, 1, 1, 0], np.uint8))
    assert (sure.disadvantaged.sum(), sure.advantaged.sum()) == (2, 2)
    assert (sure.disadvantaged[-1], sure.advantaged[0], sure.advantaged[len(sure.advantaged) // 2]) == (1, 1, 1)
    assert sure.named is None, "of two people one in 1,000 is nobody"
    assert sure.curve() == []
    factor, right = sure.surest(2)
    assert (factor, right) == (pytest.approx(math.exp(10)), 1.0)
    assert sure.surest(3)[0] == pytest.approx(math.exp(2.25))
    both = Sure.together([sure, sure])
    assert both.disadvantaged.sum() == 4


def test_randomised_response_is_as_right_as_it_is_sure() -> None:
    epsilon = 1.0
    ratio = response(np.random.default_rng(21), epsilon)
    # Unequal groups, of which either counts as much as the other.
    kept = (PROTECTED == 1) | (np.arange(PEOPLE) % 20 == 0)
    sure = Sure.of(1 / (1 + np.exp(-ratio[kept])), PROTECTED[kept])
    (low, high) = sure.curve()
    kept = 1 / (1 + math.exp(-epsilon))
    assert high[0] == pytest.approx(kept)
    assert high[1] == pytest.approx(kept, abs=0.02)
    assert low[1] == pytest.approx(1 - kept, abs=0.02)
    assert sure.surest() == (pytest.approx(math.e), pytest.approx(kept, abs=0.02))
    assert sure.named == pytest.approx(math.e / 1000, rel=0.1)
