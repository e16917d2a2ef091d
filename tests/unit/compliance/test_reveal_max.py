"""`recommended` and `cells` keep what a batch gives away below a limit, wherever anything does."""

from __future__ import annotations

import math

import numpy as np
import pytest

from compliance.exposure import exposure, limited, reveal_max
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.cells import EPSILON, CellsMechanism, plan, purchases
from compliance.mechanisms.mechanism import NO_FACTS, Question
from compliance.mechanisms.recommended import SHRUNK, Recommended, choose
from compliance.noise import Seeded
from compliance.records import Records
from fairwall.laws.cells import CELL_MIN
from fairwall.laws.exposure import Limit, cells_within, revealed
from fairwall.laws.shares import DEFAULT_SHARES

LIMIT = Limit(0.6)


def question(n: int, models: int, *, alike: bool = True) -> Question:
    """People in unequal groups, and models: one score at several thresholds, or independent scores."""
    rng = np.random.default_rng(5)
    protected = (rng.permutation(n) >= n // 10).astype(np.uint8)
    score = rng.random(n)
    predictions = rng.random((models, n))
    if alike:
        predictions = (score > np.linspace(0.2, 0.8, models)[:, np.newaxis]).astype(np.float64)
    return Question("sp", predictions, Records(np.zeros(n, np.uint8), protected, ("sp",)))


@pytest.mark.parametrize(("n", "models"), [(1000, 25), (300, 5), (1000, 1)])
@pytest.mark.parametrize("epsilon", [0.40, 0.41, 1.0, 5.0, 20.0])
def test_what_is_chosen_stays_within_the_limit(n: int, models: int, epsilon: float) -> None:
    name = choose("sp", n, models, epsilon, limit=LIMIT).removesuffix(SHRUNK)
    assert revealed(name, "sp", n, models, epsilon) <= 0.6
    chosen = Recommended(reveal_max=0.6).chosen("sp", n, models, epsilon, 0.0, question(n, models))
    if chosen.name == "cells":
        return  # As many as may be: below.
    assert revealed(chosen.name, "sp", n, models, epsilon) <= 0.6


@pytest.mark.parametrize(("limit", "epsilon", "within"), [(0.6, 0.405, True), (0.6, 0.406, False), (1.0, 5.0, True)])
def test_randomised_response_is_chosen_only_where_it_promises_as_much(
    monkeypatch: pytest.MonkeyPatch, limit: float, epsilon: float, within: bool
) -> None:
    from compliance.mechanisms import recommended

    rows = recommended.standings("sp", 1000, 25, 5.0)
    assert rows[0].name == "randomized-response"
    # At small epsilons it is never best: as if it were.
    monkeypatch.setattr(recommended, "standings", lambda *_: rows)
    assert (choose("sp", 1000, 25, epsilon, limit=Limit(limit)) == "randomized-response") == within


def test_without_a_limit_all_is_as_it_was() -> None:
    assert choose("sp", 1000, 25, 5.0) == choose("sp", 1000, 25, 5.0, limit=Limit(1.0)) == "randomized-response"
    assert choose("sp", 1000, 25, 5.0, limit=LIMIT) != "randomized-response"


def test_where_nothing_stays_below_the_least_is_revealed() -> None:
    name = choose("sp", 20, 1, 3.0, limit=Limit(0.55)).removesuffix(SHRUNK)
    told = {one: revealed(one, "sp", 20, 1, 3.0) for one in ("counts", "laplace", "cauchy", "randomized-response")}
    assert told[name] == min(told.values()) > 0.55
    assert Recommended(reveal_max=0.55).reveals("sp", 20, 1, 3.0, 0.0) >= told[name]


def test_cells_that_are_few_enough_answer_where_nothing_else_stays_within() -> None:
    asked, epsilon = question(100, 40, alike=False), 100.0
    assert revealed(choose("sp", 100, 40, epsilon, limit=LIMIT), "sp", 100, 40, epsilon) > 0.6
    chosen = Recommended(reveal_max=0.6).chosen("sp", 100, 40, epsilon, 0.0, asked)
    assert isinstance(chosen, CellsMechanism)
    ((_, _, cells, _),) = plan(asked, epsilon, chosen.limit)
    assert 1 < cells <= cells_within(100, epsilon, LIMIT)


def test_within_the_limit_nothing_is_chosen_that_errs_more_than_the_midpoint() -> None:
    asked = question(100, 40, alike=False)
    assert choose("sp", 100, 40, 10.0, limit=LIMIT) == "cauchy"  # the least error of what stays within, and too much
    assert Recommended(reveal_max=0.6).chosen("sp", 100, 40, 10.0, 0.0, asked).name == "cells"


def test_no_more_cells_are_bought_than_may_be() -> None:
    asked, most = question(1000, 40), cells_within(1000, 1.0, Limit(0.56))
    bought = {}
    for limit in (0.56, 1.0):
        mechanism = Recommended(reveal_max=limit)
        assert mechanism.chosen("sp", 1000, 40, 1.0, 0.0, asked).name == "cells"
        facts = mechanism.release(asked, NO_FACTS, 1.0, 0.0, Seeded(np.random.default_rng(1))).facts
        assert EPSILON in facts
        ((one,),) = [list(purchases(facts))]
        bought[limit] = len(one.counts)
    assert 1 < bought[0.56] <= most < bought[1.0]


def test_a_cube_may_be_chosen_where_its_own_sides_are_few_enough() -> None:
    """A batch's cube reveals as much as the batch has different models, not as it might have."""
    n, epsilon = 100, 1.5
    worst = revealed("cube", "sp", n, 8, epsilon)
    one = revealed("cube", "sp", n, 8, epsilon, different=1)
    assert one < worst
    limit = (one + worst) / 2
    same = question(n, 8, alike=False)
    repeated = Question("sp", np.repeat(same.predictions[:1], 8, axis=0), same.records)
    chosen = Recommended(reveal_max=limit)
    assert not chosen.chosen("sp", n, 8, epsilon, 0.0, same).name.startswith("cube")
    assert chosen.chosen("sp", n, 8, epsilon, 0.0, repeated).name.startswith("cube")


def test_of_every_mechanism_the_exposure_is_said_or_not_known() -> None:
    for name, mechanism in MECHANISMS.items():
        told = exposure(mechanism, "sp", 200, 3, 1.0, 1e-6, DEFAULT_SHARES)
        if name in ("exact", "round", "pass-fail"):
            assert told == 1
        elif name in ("sparse-vector", "exponential", "sample-and-aggregate", "propose-test-release"):
            assert math.isnan(told)
        else:
            assert 0.5 <= told <= (math.e + 1e-6) / (1 + math.e)


def test_cells_that_a_policy_names_keep_to_its_limit() -> None:
    asked, bought = question(1000, 40), {}
    for limit in (0.6, 1.0):
        mechanism = limited(MECHANISMS["cells"], limit)
        assert reveal_max(mechanism) == limit
        assert exposure(mechanism, "sp", 1000, 40, 5.0, 0.0, LIMIT.shares) <= limit
        facts = mechanism.release(asked, NO_FACTS, 5.0, 0.0, Seeded(np.random.default_rng(1))).facts
        ((one,),) = [list(purchases(facts))]
        bought[limit] = one
    assert len(bought[0.6].counts) <= cells_within(1000, 5.0, LIMIT) < len(bought[1.0].counts)
    assert np.bincount(bought[0.6].cell_of).min() >= CELL_MIN > np.bincount(bought[1.0].cell_of).min()
