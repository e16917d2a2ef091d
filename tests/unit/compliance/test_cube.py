"""What noise from a cube costs, over all neighbours of few people, and how its answers and intervals come about."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.cube import CubeMechanism, cube_step
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.noise.sampling import Seeded, System
from compliance.records.people import Records
from fairwall.laws.noise.linf_ball import TOGETHER, coordinates
from tests.support.noise_sources import Asked, Spy

BOUGHT = {"n0": np.array([2.0, 3.0 / np.log(80), 0.0])}


def asked_for(
    predictions: NDArray[np.float64], protected: NDArray[np.uint8], epsilon: float, *, known: bool, name: str = "cube"
) -> list[Asked]:
    labels = np.ones(protected.size, np.uint8)
    spy = Spy(Seeded(np.random.default_rng(1)))
    question = BatchQuestion("sp", predictions, Records(labels, protected, ()))
    MECHANISMS[name].release(question, BOUGHT if known else NO_FACTS, epsilon, 0.0, spy)  # type: ignore[arg-type]
    return spy.asked


def loss(one: list[Asked], other: list[Asked]) -> float:
    """The largest log-ratio of what two databases release: distances in whole steps, of a cube the farthest side's."""
    total = 0.0
    for a, b in zip(one, other, strict=True):
        assert (a.law, a.step, a.scale) == (b.law, b.step, b.scale)
        moved = np.abs(np.rint(a.values / a.step) - np.rint(b.values / b.step))
        total += float(moved.max() if a.law == "cube" else moved.sum()) * a.step / a.scale
    return total


def worlds(n: int) -> list[NDArray[np.uint8]]:
    return [np.array(groups, np.uint8) for groups in itertools.product((0, 1), repeat=n) if 0 < sum(groups) < n]


def worst(predictions: NDArray[np.float64], epsilon: float, *, known: bool, name: str = "cube") -> float:
    n = predictions.shape[1]
    released = {
        tuple(groups.tolist()): asked_for(predictions, groups, epsilon, known=known, name=name) for groups in worlds(n)
    }
    found = 0.0
    for groups, one in released.items():
        for person in range(n):
            other = released.get((*groups[:person], 1 - groups[person], *groups[person + 1 :]))
            if other is not None:
                found = max(found, loss(one, other))
    return found


@pytest.mark.few(2)
@pytest.mark.parametrize(("n", "models", "known"), [(5, 2, False), (7, 2, False), (4, 3, True), (6, 1, True)])
def test_no_neighbours_cost_more_than_epsilon_and_the_worst_do_cost_it(n: int, models: int, known: bool) -> None:
    generator = np.random.default_rng((n, models))
    for predictions in (
        generator.random((models, n)),
        1e-9 * generator.random((models, n)) + 0.3,
        (generator.random((models, n)) < 0.5).astype(np.float64),
    ):
        found = worst(predictions, 0.7, known=known)
        constant = (predictions.min(axis=1) == predictions.max(axis=1)).all()
        assert found <= 0.7 * (1 + 1e-15)
        assert found == (0.0 if known and constant else pytest.approx(0.7, rel=1e-12))


@pytest.mark.few(1)
@pytest.mark.parametrize(("models", "n", "known"), [(1, 4, False), (2, 5, True), (30, 6, False)])
def test_common_sums_cost_no_more_either(models: int, n: int, known: bool) -> None:
    generator = np.random.default_rng((n, models))
    scores = generator.random((models, n))
    for predictions in (scores, 0.5 + 0.01 * scores - 0.4 * scores[:1], (scores < 0.5).astype(np.float64)):
        for epsilon in (0.1, 3.0):  # at one of them other sums are chosen
            found = worst(predictions, epsilon, known=known, name="low-rank")
            assert found <= epsilon * (1 + 1e-15)
            # Where N0 is known nobody need be the farthest in both cubes.
            assert found >= (0.8 if known else 0.999) * epsilon


@pytest.mark.parametrize("known", [False, True])
def test_many_models_cost_no_more(known: bool) -> None:
    predictions = np.random.default_rng(5).random((TOGETHER + 1, 5))
    assert worst(predictions, 0.7, known=known) == pytest.approx(0.7, rel=1e-12)
    first = asked_for(predictions, worlds(5)[3], 0.7, known=known)
    assert [asked.law for asked in first] == (["cube"] if known else ["laplace", "cube"])


def test_sums_that_are_rounded_themselves_would_need_a_step_more() -> None:
    for steps in (1.25, 1 + 2.0**-40):
        # The broken twin: the grid's step forgotten, lambda = epsilon h, for sums that move by `steps` = 1/h of their
        # grid: no whole number, or one and the errors of float64.
        epsilon, most = 0.7, 0.0
        values = np.array([[0.0, 1.0, 0.25, 0.5, 0.75, 1.0], [1.0, 0.0, 0.0, 1.0, 0.5, 0.0]])
        centred = coordinates([values], 2.0**-30).of(values) * 2.0**-30 * steps
        for groups in worlds(6):
            for person in range(6):
                other = groups.copy()
                other[person] ^= 1
                if 0 < other.sum() < 6:
                    one, two = (np.rint(centred[:, of == 0].sum(axis=1)) for of in (groups, other))
                    most = max(most, float(np.abs(one - two).max()))
        assert most == math.floor(steps) + 1
        assert most * epsilon / steps > 1.5 * epsilon


def test_the_grid_depends_on_public_numbers_and_is_fine() -> None:
    for epsilon in (1e-9, 1e-3, 0.5, 7.0, 1e6, 1e12):
        for n in (3, 1000, 10**6):
            step = cube_step(epsilon, n)
            assert math.log2(step).is_integer()
            assert step <= 1.0
            assert n / step <= 2.0**53  # sums of whole steps are exact
            assert step <= max(2.0**-23 / epsilon, 2.0**-44 * 2 * n)
    predictions = np.random.default_rng(2).random((4, 6))
    assert len({tuple((a.step, a.scale) for a in asked_for(predictions, g, 0.5, known=False)) for g in worlds(6)}) == 1


def test_every_epsilon_is_answered_soon() -> None:
    for models, epsilon in ((1, 1e-9), (40, 1e6), (1, 1e12)):
        labels, groups = np.ones(50, np.uint8), (np.arange(50) % 3 > 0).astype(np.uint8)
        question = BatchQuestion("sp", np.random.default_rng(2).random((models, 50)), Records(labels, groups, ()))
        released = CubeMechanism().release(question, NO_FACTS, epsilon, 0.0, System())
        assert released.low is not None
        assert released.high is not None
        assert (released.low <= released.high).all()
        if epsilon >= 1e6:
            assert released.values == pytest.approx(question.gaps(), abs=1e-3)
            # One interval of 95% misses one time in twenty; five half-widths are missed about once in a million models.
            off, half = np.abs(released.values - question.gaps()), (released.high - released.low) / 2
            assert (off <= 5 * half).all()
            assert models == 1 or (off <= half).mean() > 0.5


def test_what_is_the_same_for_all_is_answered_without_noise() -> None:
    for name in ("cube", "low-rank"):
        labels, groups = np.ones(50, np.uint8), (np.arange(50) % 3 > 0).astype(np.uint8)
        question = BatchQuestion("sp", np.full((3, 50), 0.3), Records(labels, groups, ()))
        for facts in (NO_FACTS, BOUGHT):
            released = MECHANISMS[name].release(question, facts, 0.1, 0.0, System())
            assert released.values == pytest.approx(0, abs=1e-12)


@pytest.mark.check
@pytest.mark.parametrize("models", [1, 25])
def test_the_noise_is_less_than_that_of_counts(models: int) -> None:
    # Median errors of decisions, one in five a yes: the ratio is about 0.7, whatever the models.
    n, generator = 1000, np.random.default_rng(8)
    groups = (np.arange(n) >= 100).astype(np.uint8)
    errors: dict[str, list[float]] = {"counts": [], "cube": []}
    for _ in range(20 + 300 // models):
        decisions = (generator.random((models, n)) < 0.2).astype(np.float64)
        question = BatchQuestion("sp", decisions, Records(np.ones(n, np.uint8), groups, ()))
        for name, found in errors.items():
            released = MECHANISMS[name].release(question, NO_FACTS, 2.0, 0.0, Seeded(generator))
            found.extend(np.abs(released.values - question.gaps()).tolist())
    assert np.median(errors["cube"]) < 0.85 * np.median(errors["counts"])


def test_shrunk_answers_release_the_same_and_are_the_posterior_s() -> None:
    # Twelve models that agree, at a small epsilon: the noise is the same, the answers err less.
    generator, n = np.random.default_rng(4), 300
    groups = (np.arange(n) % 6 > 0).astype(np.uint8)
    common = generator.random(n)
    predictions = np.clip(common + 0.05 * generator.normal(size=(12, n)), 0, 1)
    question = BatchQuestion("sp", predictions, Records(np.zeros(n, np.uint8), groups, ("sp",)))
    errors = []
    for seed in range(15):
        spies = [Spy(Seeded(np.random.default_rng(seed))) for _ in range(2)]
        answers = [
            CubeMechanism(shrinks=shrinks).release(question, NO_FACTS, 0.5, 0.0, spy)  # type: ignore[arg-type]
            for shrinks, spy in zip((False, True), spies, strict=True)
        ]
        assert [a.scale for a in spies[0].asked] == [a.scale for a in spies[1].asked]
        assert answers[0].facts["n0"].tolist() == answers[1].facts["n0"].tolist()
        # Intervals are of what was released.
        assert answers[0].low is not None
        assert answers[1].low is not None
        assert answers[0].low.tolist() == answers[1].low.tolist()
        errors.append([np.abs(answer.values - question.gaps()) for answer in answers])
    plain, shrunk = np.median(errors, axis=(0, 2))
    assert shrunk < 0.5 * plain


def test_shrunk_answers_are_exact_at_a_large_epsilon() -> None:
    for metric in ("sp", "abs_sp", "di"):
        question = BatchQuestion(
            metric, np.random.default_rng(1).random((4, 30)),
            Records(np.zeros(30, np.uint8), (np.arange(30) % 3 > 0).astype(np.uint8), (metric,)),
        )  # fmt: skip
        found = CubeMechanism(shrinks=True).release(question, NO_FACTS, 1e6, 0.0, Seeded(np.random.default_rng(1)))
        assert found.values == pytest.approx(question.gaps(), abs=1e-3)


def test_models_that_agree_are_answered_nearer_from_common_sums() -> None:
    # Fifty logistic models of one score and some noise: the median error is about a third of the cube's.
    n, models, generator = 1000, 50, np.random.default_rng(9)
    groups = (np.arange(n) >= 100).astype(np.uint8)
    errors: dict[str, list[float]] = {"cube": [], "low-rank": []}
    for _ in range(2):
        z = generator.standard_normal(n) + 0.3 * groups + 0.1 * generator.standard_normal((models, n))
        question = BatchQuestion("sp", 1 / (1 + np.exp(-z)), Records(np.ones(n, np.uint8), groups, ()))
        for name, found in errors.items():
            released = MECHANISMS[name].release(question, NO_FACTS, 1.0, 0.0, Seeded(generator))
            found.extend(np.abs(released.values - question.gaps()).tolist())
    assert np.median(errors["low-rank"]) < 0.5 * np.median(errors["cube"])


def test_common_sums_buy_n0_once_for_other_mechanisms_too() -> None:
    labels, groups = np.ones(50, np.uint8), (np.arange(50) % 3 > 0).astype(np.uint8)
    question = BatchQuestion("sp", np.random.default_rng(2).random((6, 50)), Records(labels, groups, ()))
    noise = Seeded(np.random.default_rng(3))
    bought = MECHANISMS["low-rank"].release(question, NO_FACTS, 2.0, 0.0, noise).facts
    assert set(bought) == {"n0"}
    for name in ("counts", "cube", "low-rank"):
        assert not MECHANISMS[name].release(question, bought, 2.0, 0.0, noise).facts
