"""What `recommended` answers with where a prior does not hold, and what it never chooses."""

from __future__ import annotations

import itertools
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.mechanisms.cells import CellsMechanism
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, Mechanism, ends_of
from compliance.mechanisms.recommended import CELLS_FROM, Recommended, answerers
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from fairwall.laws.choice.choose import Allowance, _contenders, _is_within, best, best_for, nearest
from fairwall.laws.choice.prediction import MIDPOINT, SHRUNK, Promise, choose, standings
from fairwall.laws.choice.public_batch import AskedBatch
from fairwall.laws.mechanisms.table import MECHANISM_LAWS
from fairwall.laws.privacy.exposure import Limit

PEOPLE, FEW, EPSILON, DRAWS = 2000, 160, 0.5, 40
OTHERS = ("counts", "cube")


def in_a_tail(protected: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.float64]:
    """Scores that the advantaged have 0.35 more of, up to 1: a gap of 0.29."""
    scores: NDArray[np.float64] = np.minimum(1, rng.random(len(protected)) + 0.35 * protected)
    return scores


def of_few(protected: NDArray[np.uint8], rng: np.random.Generator) -> NDArray[np.float64]:
    """Decisions that are yes for 3% of the advantaged alone."""
    return ((rng.random(len(protected)) < 0.03) & (protected == 1)).astype(np.float64)


def errors(
    answering: Mechanism, world: object, draws: int, models: int = 1, people: int = PEOPLE, epsilon: float = EPSILON
) -> tuple[NDArray[np.float64], int]:
    """How far one model's answers are off, and how many of their intervals hold; none of those that have none."""
    off, held = [], 0
    for draw in range(draws):
        rng = np.random.default_rng(draw)
        protected = (rng.permutation(people) >= FEW * people // PEOPLE).astype(np.uint8)
        values = np.stack([world(protected, rng) for _ in range(models)])  # type: ignore[operator]
        asked = BatchQuestion("sp", values, Records(np.zeros(people, np.uint8), protected, ("sp",)))
        told = answering.release(asked, NO_FACTS, epsilon, 0.0, Seeded(np.random.default_rng(1000 + draw)))
        off.append(float(np.abs(np.clip(told.values, -1, 1) - asked.gaps())[0]))
        if told.low is not None and told.high is not None:
            held += bool(told.low[0] <= asked.gaps()[0] <= told.high[0])
    return np.array(off), held


@pytest.mark.check
@pytest.mark.parametrize(("world", "reveal_max"), [(in_a_tail, 0.6), (of_few, 1.0)])
def test_a_gap_that_no_prior_expects_is_answered_about_as_well_as_by_plain_counts(
    world: object, reveal_max: float
) -> None:
    """Cells answered .063 and .014 off, where a cube is .007 and .002 off; in the first no interval of 40 held."""
    draws = DRAWS // 2
    found, held = errors(Recommended(reveal_max=reveal_max), world, draws)
    best = min(float(np.median(errors(answerers()[name], world, draws)[0])) for name in OTHERS)
    assert np.median(found) <= 2 * best + 1e-4
    # Fewer than 14 of 20 hold once in ten million times, where each holds in 95%.
    assert held >= 14


def test_cells_answer_such_gaps_worse() -> None:
    """The broken twin: what was chosen for one model."""
    found, held = errors(CellsMechanism(), in_a_tail, 4)
    assert np.median(found) > 2.5 * np.median(errors(answerers()["cube"], in_a_tail, 4)[0])
    assert held < 4


def test_cells_are_for_batches_of_several_models() -> None:
    """The same model twice is one; and what cells tell for nothing they tell of as many."""
    for models, repeats in ((1, 1), (CELLS_FROM - 1, 2), (CELLS_FROM, 1)):
        rng, chosen, epsilon = np.random.default_rng(4), Recommended(), 1.0
        protected = (rng.permutation(600) >= 100).astype(np.uint8)
        records, score = Records(np.zeros(600, np.uint8), protected, ("sp",)), rng.random(600)
        thresholds = np.linspace(0.1, 0.9, models)[:, np.newaxis]
        asked = BatchQuestion("sp", np.repeat((score > thresholds).astype(np.float64), repeats, axis=0), records)
        bought = CellsMechanism().release(asked, NO_FACTS, epsilon, 0.0, Seeded(rng)).facts
        name = chosen.chosen("sp", 600, models * repeats, epsilon, 0.0, asked).name
        assert (name == "cells") == chosen.is_free(bought, epsilon, asked) == (models >= CELLS_FROM)


def test_two_cubes_answer_where_models_are_near_one_and_guarantees_are_wanted() -> None:
    rng = np.random.default_rng(4)
    records = Records(np.zeros(600, np.uint8), (rng.permutation(600) >= 100).astype(np.uint8), ("sp",))
    common, own = rng.normal(size=600), rng.normal(size=(25, 600))
    chosen = Recommended(promise="guaranteed", reveal_max=0.6)
    for off, name in ((0.1, "low-rank"), (5.0, "cube")):
        asked = BatchQuestion("sp", 1 / (1 + np.exp(-common - off * own)), records)
        assert chosen.chosen("sp", 600, 25, 0.5, 0.0, asked).name == name


@pytest.mark.parametrize(
    ("people", "models", "first", "chosen"),
    [(1000, 10, "randomized-response", "cells"), (1000, 1, "counts", "cube")],
)
def test_what_publishes_attributes_must_err_far_less(people: int, models: int, first: str, chosen: str) -> None:
    """Without a limit, at epsilon 5, where a cube errs about as much, and cells of one person each as much at most."""
    epsilon, protected = 5.0, (np.arange(people) >= people // 10).astype(np.uint8)
    records = Records(np.zeros(people, np.uint8), protected, ("sp",))
    asked = BatchQuestion("sp", np.random.default_rng(0).random((models, people)), records)
    assert choose("sp", people, models, epsilon) == first
    assert Recommended().chosen("sp", people, models, epsilon, 0.0, asked).name == chosen


def test_nothing_without_an_interval_is_chosen_where_something_with_one_errs_little_more() -> None:
    for people, models, epsilon in ((200, 1, 5.0), (1000, 1, 10.0), (300, 2, 8.0)):
        rows = {row.name: row for row in standings("sp", people, models, epsilon) if row.name != MIDPOINT}
        chosen = choose("sp", people, models, epsilon, limit=Limit(0.6))
        if MECHANISM_LAWS[chosen.removesuffix(SHRUNK)].interval is None:
            surer = [row.error for name, row in rows.items() if MECHANISM_LAWS[row.mechanism].interval is not None]
            assert rows[chosen].error * 1.5 <= min(surer)


def test_attributes_are_published_where_that_errs_far_less() -> None:
    records = Records(np.zeros(200, np.uint8), (np.arange(200) >= 20).astype(np.uint8), ("sp",))
    asked = BatchQuestion("sp", np.random.default_rng(0).random((3, 200)), records)
    assert Recommended().chosen("sp", 200, 3, 10.0, 0.0, asked).name == "randomized-response"


def widths_of(scores: NDArray[np.float64], groups: NDArray[np.uint8], epsilon: float) -> dict[str, float]:
    """Median half-widths of guaranteed intervals."""
    asked, widths = (
        BatchQuestion("sp", scores, Records(np.zeros(len(groups), np.uint8), groups, ("sp",))),
        dict[str, float](),
    )
    for mechanism in (Recommended(promise="guaranteed"), answerers()["cube"], answerers()["randomized-response"]):
        low, high = ends_of(mechanism.release(asked, NO_FACTS, epsilon, 0.0, Seeded(np.random.default_rng(1))))[0]
        widths[mechanism.name] = float(np.median(np.clip(high, -1, 1) - np.clip(low, -1, 1))) / 2
    return widths


def narrow(disadvantaged: int) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Scores that are near one another."""
    rng = np.random.default_rng(7)
    groups = (rng.permutation(1000) >= disadvantaged).astype(np.uint8)
    return np.clip(0.5 + 0.05 * rng.normal(size=(25, 1000)), 0, 1), groups


def test_a_guarantee_is_not_sought_from_attributes_where_the_group_may_be_too_small_for_it() -> None:
    """Which promise most about a fifth of the people, as far as is known beforehand, and of few nothing."""
    widths = widths_of(*narrow(80), 1.0)
    assert widths["recommended"] <= 1.02 * widths["cube"]
    # What people of these scores cannot have is cut off.
    assert 2 * widths["cube"] < widths["randomized-response"] < 0.2


def test_nor_where_the_gap_may_be_too_large() -> None:
    rng, groups = np.random.default_rng(8), (np.arange(1000) >= 80).astype(np.uint8)
    scores = np.where(groups == 1, rng.beta(9, 2, (26, 1000)), rng.beta(2, 9, (26, 1000)))
    widths = widths_of(0.5 * scores[0] + 0.5 * scores[1:], groups, 5.0)
    assert widths["recommended"] <= 1.02 * widths["cube"]
    assert widths["randomized-response"] > 1.3 * widths["cube"]


# Very many people ----------------------------------------------------------------------------------------------------


@pytest.mark.check
@pytest.mark.few(1)
@pytest.mark.parametrize(("kind", "models"), [("decisions", 1), ("near", 5), ("thresholds", 5)])
def test_very_many_are_chosen_for_by_a_part_of_them_as_by_all(
    kind: str, models: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    people, rng = 150_000, np.random.default_rng(3)
    common, own = rng.normal(size=people), rng.normal(size=(models, people))
    rows = {
        "near": 1 / (1 + np.exp(-common - 0.3 * own)),
        "decisions": (own > 0.3).astype(np.float64),
        "thresholds": (common > np.linspace(-2, 2, models)[:, np.newaxis]).astype(np.float64),
    }[kind]
    labels = (rng.random(people) < 0.2).astype(np.uint8)
    for metric, epsilon, promise in itertools.product(("sp", "eo"), (0.1, 1.0), get_args(Promise)):
        allowance = Allowance(epsilon, promise=promise)
        batch = AskedBatch(metric, rows, labels, (metric,))
        assert len(batch.few.labels) < people / 2
        by_few = best_for(batch, allowance).name
        monkeypatch.setattr(AskedBatch, "few", property(lambda self: self))
        batch.found.clear()
        by_all = nearest(batch, best(metric, batch.people, models, allowance, batch.exposed), allowance).name
        if by_few != by_all:  # then either does: of cells a part tells up to a tenth too little
            errors = _contenders(batch, allowance)
            assert errors[by_few] < 1.15 * errors[by_all]
        monkeypatch.undo()


def test_a_part_of_people_is_not_taken_where_a_label_is_too_rare() -> None:
    rows = np.random.default_rng(0).random((1, 150_000))
    labels = np.zeros(150_000, np.uint8)
    labels[:1000] = 1
    batch = AskedBatch("eo", rows, labels, ("eo",))
    assert batch.few is batch
    labels[:20_000] = 1
    few = AskedBatch("eo", rows, labels, ("eo",)).few
    assert few.people == pytest.approx(20_000, rel=0.05)
    assert few.few is few


@pytest.mark.parametrize(("rare", "drawn"), [(300, False), pytest.param(700, True, marks=pytest.mark.check)])
def test_a_rare_label_of_very_many_is_drawn_as_far_as_it_is_some(rare: int, drawn: bool) -> None:
    rows, labels = np.zeros((1, 6_000_000), np.bool_), np.zeros(6_000_000, np.uint8)
    labels[:rare] = 1
    batch = AskedBatch("eo", rows, labels, ("eo",))
    assert (batch.few is not batch) == drawn
    if drawn:
        assert batch.few.people == pytest.approx(rare, rel=0.4)


@pytest.mark.check
def test_what_is_revealed_of_very_many_is_a_matter_of_all() -> None:
    """Models that differ about people whom the part lacks have noise of their own."""
    people, models = 150_000, 40
    rows = np.tile(np.random.default_rng(0).random(people), (models, 1))
    batch = AskedBatch("sp", rows, np.zeros(people, np.uint8), ("sp",))
    assert batch.few.drawn is not None
    left_out = np.setdiff1d(np.arange(people), batch.few.drawn)
    rows[np.arange(models), left_out[:models]] = 0.5
    allowance = Allowance(2.0, limit=Limit(0.6))
    one, different = (allowance.reveals(batch, "cube", count) for count in (1, models))
    limit = Limit((one + different) / 2)
    allowance = Allowance(2.0, limit=limit)
    assert _is_within(batch.few, "cube", allowance) == (one < different)
    assert _is_within(batch, "cube", allowance) == (different < one)
    assert ("cube" in {each.removesuffix(SHRUNK) for each in _contenders(batch, allowance)}) == (different < one)
