"""`recommended` and `cells` keep what a batch gives away below a limit, wherever anything does."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from compliance.answers.exposure import exposure, exposure_about, limited, reveal_max
from compliance.ledger.accountant import pure
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, Mechanism, chosen
from compliance.mechanisms.recommended import Recommended
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from fairwall.laws.choice.cell_partition import CELL_MIN
from fairwall.laws.choice.cell_purchases import EPSILON, plan, purchases
from fairwall.laws.choice.choose import Allowance, best_for, nearest
from fairwall.laws.choice.prediction import SHRUNK, choose
from fairwall.laws.metrics.group_size_range import DEFAULT_SHARES, Shares
from fairwall.laws.privacy.exposure import Limit, cells_within, revealed
from fairwall.laws.privacy.most_exposed import aimed
from fairwall.laws.privacy.most_exposed import limit as most_named

LIMIT = Limit(0.6)


def question(n: int, models: int, *, alike: bool = True) -> BatchQuestion:
    """People in unequal groups, and models: one score at several thresholds, or independent scores."""
    rng = np.random.default_rng(5)
    protected = (rng.permutation(n) >= n // 10).astype(np.uint8)
    score = rng.random(n)
    predictions = rng.random((models, n))
    if alike:
        predictions = (score > np.linspace(0.2, 0.8, models)[:, np.newaxis]).astype(np.float64)
    return BatchQuestion("sp", predictions, Records(np.zeros(n, np.uint8), protected, ("sp",)))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("n", "models", "epsilon"), [(300, 5, 1.0), (1000, 25, 0.41), (1000, 1, 5.0), (1000, 25, 20.0)]
)
def test_what_is_chosen_stays_within_the_limit(n: int, models: int, epsilon: float) -> None:
    name = choose("sp", n, models, epsilon, limit=LIMIT).removesuffix(SHRUNK)
    assert revealed(name, "sp", n, models, epsilon) <= 0.6
    chosen = Recommended(reveal_max=0.6).chosen("sp", n, models, epsilon, 0.0, question(n, models))
    if chosen.name == "cells":
        return  # As many as may be: below.
    assert revealed(chosen.name, "sp", n, models, epsilon) <= 0.6


def test_randomised_response_is_chosen_only_where_it_promises_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    from fairwall.laws.choice import prediction

    rows = prediction.standings("sp", 1000, 25, 5.0)
    assert rows[0].name == "randomized-response"
    # At small epsilons it is never best: as if it were.
    monkeypatch.setattr(prediction, "standings", lambda *_: rows)
    for limit, epsilon, within in ((0.6, 0.405, True), (0.6, 0.406, False), (1.0, 5.0, True)):
        assert (choose("sp", 1000, 25, epsilon, limit=Limit(limit)) == "randomized-response") == within


def test_without_a_limit_all_is_as_it_was() -> None:
    assert choose("sp", 1000, 25, 5.0) == choose("sp", 1000, 25, 5.0, limit=Limit(1.0)) == "randomized-response"
    assert choose("sp", 1000, 25, 5.0, limit=LIMIT) != "randomized-response"


def test_where_nothing_stays_below_the_least_is_revealed() -> None:
    name = choose("sp", 20, 1, 3.0, limit=Limit(0.55)).removesuffix(SHRUNK)
    told = {one: revealed(one, "sp", 20, 1, 3.0) for one in ("counts", "laplace", "cauchy", "randomized-response")}
    assert told[name] == min(told.values()) > 0.55
    assert Recommended(reveal_max=0.55).reveals("sp", 20, 1, 3.0, 0.0) >= told[name]


@pytest.mark.check
def test_cells_that_are_few_enough_answer_where_nothing_else_stays_within() -> None:
    asked, epsilon = question(100, 40, alike=False), 100.0
    assert revealed(choose("sp", 100, 40, epsilon, limit=LIMIT), "sp", 100, 40, epsilon) > 0.6
    chosen = Recommended(reveal_max=0.6).chosen("sp", 100, 40, epsilon, 0.0, asked)
    spent = chosen.cost(epsilon, 0.0).epsilon
    assert chosen.name == "cells"
    assert spent < epsilon
    (planned,) = plan(asked.asked, spent, LIMIT)
    assert 1 < planned.count <= cells_within(100, spent, LIMIT)


@pytest.mark.check
def test_within_the_limit_nothing_is_chosen_that_errs_more_than_the_midpoint() -> None:
    asked = question(100, 40, alike=False)
    assert choose("sp", 100, 40, 10.0, limit=LIMIT) == "cauchy"  # the least error of what stays within, and too much
    assert Recommended(reveal_max=0.6).chosen("sp", 100, 40, 10.0, 0.0, asked).name == "cells"


def test_no_more_cells_are_bought_than_may_be() -> None:
    asked, most = question(1000, 40), cells_within(1000, 1.0, Limit(0.56))
    bought = {}
    for limit in (0.56, 1.0):
        mechanism = CellsMechanism(limit=Limit(limit))
        facts = mechanism.release(asked, NO_FACTS, 1.0, 0.0, Seeded(np.random.default_rng(1))).facts
        assert EPSILON in facts
        ((one,),) = [list(purchases(facts))]
        bought[limit] = len(one.counts)
    assert 1 < bought[0.56] <= most < bought[1.0]


def test_where_a_sum_reveals_more_than_may_be_nothing_is_measured_besides() -> None:
    rng = np.random.default_rng(5)
    rows = np.clip(rng.random(1000) + 0.05 * rng.normal(size=(25, 1000)), 0, 1)
    records = Records(np.zeros(1000, np.uint8), (rng.permutation(1000) >= 100).astype(np.uint8), ("sp",), 20)
    limit, asked = limit_of(20), BatchQuestion("sp", rows, records).asked
    assert cells_within(1000, 1.0, limit, besides=True) > 1
    assert cells_within(1000, 4.0, limit) > cells_within(1000, 4.0, limit, besides=True) == 0
    measured, whole = (plan(asked, epsilon, limit) for epsilon in (1.0, 4.0))
    assert [each.residual is None for each in (*measured, *whole)] == [False, True]
    assert measured[0].count <= cells_within(1000, 1.0, limit, besides=True)


def test_a_cube_may_be_chosen_where_its_own_sides_are_few_enough() -> None:
    """A batch's cube reveals as much as the batch has different models, not as it might have."""
    n, epsilon = 100, 1.5
    worst = revealed("cube", "sp", n, 8, epsilon)
    one = revealed("cube", "sp", n, 8, epsilon, different=1)
    assert one < worst
    limit = (one + worst) / 2
    same = question(n, 8, alike=False)
    repeated = BatchQuestion("sp", np.repeat(same.predictions[:1], 8, axis=0), same.records)
    chosen = Recommended(reveal_max=limit)
    assert not nearest(same.asked, "counts", Allowance(epsilon, limit=Limit(limit))).name.startswith("cube")
    answering = chosen.chosen("sp", n, 8, epsilon, 0.0, repeated)
    assert (answering.name, answering.cost(epsilon, 0.0)) == ("cube", pure(epsilon))


def test_a_batch_spends_what_answers_it_best_within_the_limit_and_is_charged_that() -> None:
    """At epsilon 3 and more no cells stay within the limit: counts of 25 models err several times as much."""
    rng = np.random.default_rng(5)
    records = replace(question(1000, 1).records, minimum_group=20)
    rows = np.clip(rng.random(1000) + 0.05 * rng.normal(size=(25, 1000)), 0, 1)
    asked, errors, charged = BatchQuestion("sp", rows, records), [], []
    for epsilon in (0.5, 3.0, 16.0):
        mechanism = Recommended(reveal_max=0.6)
        answering = mechanism.chosen("sp", 1000, 25, epsilon, 0.0, asked)
        charged.append(answering.cost(epsilon, 0.0))
        spent = best_for(asked.asked, Allowance(epsilon, limit=LIMIT)).epsilon
        assert charged[-1] == pure(spent)
        assert spent <= epsilon
        assert answering.name == "cells" or revealed(answering.name, "sp", 1000, 25, spent) <= 0.6
        found, again = (each.release(asked, NO_FACTS, epsilon, 0.0, Seeded(np.random.default_rng(3)))
                        for each in (mechanism, answering))  # fmt: skip
        assert found.values.tolist() == np.clip(again.values, -1, 1).tolist()
        draws = [mechanism.release(asked, NO_FACTS, epsilon, 0.0, Seeded(np.random.default_rng(seed))).values
                 for seed in range(8)]  # fmt: skip
        errors.append(float(np.sqrt(np.mean((np.array(draws) - asked.gaps()) ** 2))))
        # What was bought at less than was asked for answers the same question for nothing.
        assert mechanism.is_free(found.facts, epsilon, asked)
    assert charged[0] == pure(0.5)
    assert all(each.epsilon < 6 for each in charged), charged
    assert max(later / errors[place] for place in range(2) for later in errors[place + 1 :]) < 1.25
    unlimited = Recommended(reveal_max=1.0).chosen("sp", 1000, 25, 5.0, 0.0, asked)
    assert unlimited.cost(5.0, 0.0) == pure(5.0)


def test_what_is_free_draws_nothing_whatever_delta_is() -> None:
    """With a delta another mechanism may come first, at another epsilon: what is not charged is not bought either."""
    rng = np.random.default_rng(7)
    groups = (np.arange(1000) >= 200).astype(np.uint8)
    score = np.where(groups == 1, rng.beta(2, 8, 1000), rng.beta(2, 5, 1000))
    decisions = score > np.quantile(score, rng.uniform(0.2, 0.9, 25))[:, np.newaxis]
    asked = BatchQuestion("sp", decisions.astype(np.float64), Records(np.zeros(1000, np.uint8), groups, ("sp",)))
    mechanism, free = Recommended(reveal_max=0.6), 0
    for delta, first, later in itertools.product((0.0, 1e-6), (1.0, 5.0), (0.5, 1.0, 2.0, 3.0)):
        bought = mechanism.release(asked, NO_FACTS, first, delta, Seeded(np.random.default_rng(1))).facts
        if mechanism.is_free(bought, later, asked):
            free += 1
            one, other = (mechanism.release(asked, bought, later, delta, Seeded(np.random.default_rng(seed)))
                          for seed in (2, 3))  # fmt: skip
            assert (one.facts, one.values.tolist()) == ({}, other.values.tolist()), (delta, first, later)
    assert free > 10


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
        mechanism = limited(MECHANISMS["cells"], Limit(limit))
        assert reveal_max(mechanism) == limit
        assert exposure(mechanism, "sp", 1000, 40, 5.0, 0.0, LIMIT.shares) <= limit
        facts = mechanism.release(asked, NO_FACTS, 5.0, 0.0, Seeded(np.random.default_rng(1))).facts
        ((one,),) = [list(purchases(facts))]
        bought[limit] = one
    assert len(bought[0.6].counts) <= cells_within(1000, 5.0, LIMIT) < len(bought[1.0].counts)
    assert np.bincount(bought[0.6].cell_of).min() >= CELL_MIN > np.bincount(bought[1.0].cell_of).min()


def asked_one_by_one(mechanism: Mechanism, n: int, n0: int, epsilon: float, trials: int) -> tuple[float, float]:
    """Buy a batch, then ask about each cell for nothing, and name whoever's gap says so: the mean accuracy, its error.

    The batch is made for that: a score at as many thresholds as cells may be, so that they are equal, which tells most.
    """
    rng, found = np.random.default_rng(11), []
    most = max(6, cells_within(n, epsilon, mechanism.limit)) if isinstance(mechanism, CellsMechanism) else 12
    score = (np.arange(n) + 0.5) / n
    batch = (score > (np.arange(1, most) / most)[:, np.newaxis]).astype(np.float64)
    for _ in range(trials):
        protected = (rng.permutation(n) >= n0).astype(np.uint8)
        records = Records(np.zeros(n, np.uint8), protected, ("sp",), n0)
        bought = BatchQuestion("sp", batch, records)
        answering = chosen(mechanism, "sp", n, most - 1, epsilon, 0.0, bought)
        facts = answering.release(bought, NO_FACTS, epsilon, 0.0, Seeded(rng)).facts
        assert EPSILON in facts, answering.name
        ((one,),) = [list(purchases(facts))]
        cells = (one.cell_of == np.arange(len(one.counts))[:, np.newaxis]).astype(np.float64)
        asked = BatchQuestion("sp", cells, records)
        told = MECHANISMS["cells"].release(asked, facts, epsilon, 0.0, Seeded(rng)).values
        guess, z = (told < 0)[one.cell_of], protected == 0
        found.append((guess[z].mean() + (~guess[~z]).mean()) / 2)
    return float(np.mean(found)), float(np.std(found) / math.sqrt(trials))


@pytest.mark.check
@pytest.mark.parametrize("name", ["counts", "cube", "randomized-response"])
def test_who_is_aimed_at_is_named_as_often_as_is_told(name: str) -> None:
    """One model that accepts one person, of 100 of whom 30 are disadvantaged: the lower the gap, the surer it is.

    700 answers of each kind; five standard errors of a share are a false alarm in a million.
    """
    n, n0, epsilon, draws, false, rng, told = 100, 30, 2.0, 700, 0.02, np.random.default_rng(7), []
    row = (np.arange(n) == 0).astype(np.float64)[np.newaxis]
    mechanism = MECHANISMS[name]
    for first in (0, 1):
        gaps = np.empty(draws)
        for draw in range(draws):
            others = (rng.permutation(n - 1) >= n0 - (1 - first)).astype(np.uint8)
            records = Records(np.zeros(n, np.uint8), np.append(np.uint8(first), others), ("sp",), 1)
            asked = BatchQuestion("sp", row, records)
            gaps[draw] = mechanism.release(asked, NO_FACTS, epsilon, 0.0, Seeded(rng)).values[0]
        told.append(gaps)
    disadvantaged, advantaged = told
    threshold = np.quantile(advantaged, false)
    share = float((disadvantaged < threshold).mean())
    most = aimed(name, "sp", n, epsilon, shares=Shares(n0 / n, n0 / n), false=false)
    # The threshold is drawn as well, by the 14 of the advantaged who are beyond it.
    error = math.sqrt(share / draws) + share / math.sqrt(false * draws)
    assert share <= most + 5 * error, (share, most)
    assert most <= most_named(epsilon, 0.0, false)
    # The broken twin: what one flip allows.
    assert name != "cube" or share > math.exp(epsilon) * false


def limit_of(least: int) -> Limit:
    return Limit(0.6, Shares(minimum_group=least, by_policy=True))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("name", "least", "epsilon"), [("cells", 30, 2.0), ("cells", 20, 5.0), ("recommended", 150, 1.0)]
)
def test_the_smallest_group_that_a_policy_allows_keeps_to_its_limit(name: str, least: int, epsilon: float) -> None:
    """Of 3,000 people 30 were named at 65% (epsilon 1) and 70% (2), and 20 at 78% (5), where 150 were reckoned with."""
    limit = limit_of(least)
    mechanism = limited(MECHANISMS[name], limit)
    assert exposure(mechanism, "sp", 3000, 40, epsilon, 0.0, limit.shares) <= 0.6
    found, error = asked_one_by_one(mechanism, 3000, least, epsilon, 15 if least < 150 else 10)
    # False alarms: one in ten million.
    assert found < 0.6 + 5.2 * error


@pytest.mark.check
def test_a_limit_that_is_reckoned_for_larger_groups_is_found_out() -> None:
    """The broken twin: cells that are few enough for 150 people, and 30."""
    found, error = asked_one_by_one(limited(MECHANISMS["cells"], limit_of(150)), 3000, 30, 2.0, 5)
    assert found > 0.6 + 5.2 * error


def test_cells_that_a_policy_names_are_as_few_as_its_smallest_group_asks_for() -> None:
    asked, cells = question(1000, 40), {}
    for least in (10, 50):
        limit = limit_of(least)
        facts = limited(MECHANISMS["cells"], limit).release(asked, NO_FACTS, 2.0, 0.0, Seeded(np.random.default_rng(1)))
        ((one,),) = [list(purchases(facts.facts))]
        cells[least] = len(one.counts)
        assert cells[least] <= cells_within(1000, 2.0, limit)
    assert cells[10] < cells[50]


def test_people_of_a_label_that_no_metric_looks_at_alone_may_be_of_any_group() -> None:
    """A policy that allows `eo` and `sp` says nothing of how few of a group have the other label."""
    rng = np.random.default_rng(2)
    labels = (np.arange(1000) % 2).astype(np.uint8)
    protected = (rng.permutation(1000) >= 300).astype(np.uint8)
    cells = {}
    for metrics in (("sp", "eo"), ("sp", "eo", "fpr")):
        asked = BatchQuestion("sp", rng.random((9, 1000)), Records(labels, protected, metrics, 100))
        of_none, of_eo = (each.count for each in plan(asked.asked, 1.0, limit_of(100)))
        cells[metrics] = of_none, of_eo
    assert cells["sp", "eo"] == (1, cells["sp", "eo", "fpr"][1])
    assert min(cells["sp", "eo", "fpr"]) > 1


@pytest.mark.check
def test_the_smallest_group_is_given_away_most() -> None:
    """Whatever a policy allows beyond its minimum: figures are told of the minimum."""
    for name in ("counts", "cube", "cells", "laplace", "cauchy", "gaussian"):
        for n, least, models, epsilon in ((1000, 5, 1, 0.5), (300, 20, 25, 5.0)):
            told = revealed(name, "sp", n, models, epsilon, 1e-6, limit_of(least).shares)
            for size in (least, 2 * least, 4 * least, n // 2):
                exactly = replace(limit_of(least).shares, low=size / n, high=size / n, by_policy=False)
                assert revealed(name, "sp", n, models, epsilon, 1e-6, exactly) <= told + 0.003, (name, n, size)


def test_the_smaller_stratum_is_what_the_limit_holds_for() -> None:
    labels = (np.arange(1000) < 60).astype(np.uint8)
    records = Records(labels, (np.arange(1000) % 2).astype(np.uint8), ("eodds_max",), 20)
    of_both = exposure_about(records, MECHANISMS["counts"], "eodds_max", 1, 2.0, 0.0, limit_of(20).shares)
    assert of_both == exposure(MECHANISMS["counts"], "eodds_max", 120, 1, 2.0, 0.0, limit_of(20).shares)
    assert of_both > exposure(MECHANISMS["counts"], "eodds_max", 1000, 1, 2.0, 0.0, limit_of(20).shares)
