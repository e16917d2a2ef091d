"""What `cells`, `cube` and `low-rank` cost at worst, exactly, for every number of people from 4 to 60 and for more.

**Why flips are enough.** Whatever these release are whole numbers of steps, linear in who is disadvantaged, and noise
whose law depends on nothing secret: P(z steps) ~ exp(-|z| step / scale), |z| the sum of the numbers' sizes for Laplace
noise and the largest for a cube's, in whole stairs for a staircase's. The largest log-ratio of two databases is
therefore how far apart their numbers are, times step / scale, and it is reached. By linearity what one flip moves is
the same whoever else is disadvantaged. So all pairs of neighbours among the 2^n databases are covered by n flips in the
mechanism itself; that the numbers are linear is looked at with other databases. Arithmetic is with fractions, and
epsilon the decimal that is charged, of which float64 has no exact number.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.cube import cube_step
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion, Facts
from compliance.noise import sampling as sampler
from compliance.noise.sampling import Noise, Seeded
from compliance.records.people import Records
from fairwall.laws.choice.cell_partition import cells_scale
from fairwall.laws.noise.linf_ball import cube_scales
from fairwall.laws.privacy.amounts import written

EPSILONS = (0.1, 0.5, 1.0, 5.0, 20.0)
FEW = range(4, 61)
MANY = (61, 100, 256, 550, 1024, 1750, 3000)
MECHANISM_NAMES = ("cells", "cube", "low-rank")
N0_BOUGHT: Facts = {"n0": np.array([2.0, 3.0 / np.log(80), 0.0])}


class EnoughError(Exception):
    """All noise has been asked for."""


@dataclass
class Watch:
    """Notes of every draw the law, the step in units of the scale, and the secret numbers in whole steps."""

    noise: Noise
    most: int | None = None
    laws: list[tuple[str, Fraction]] = field(default_factory=list)
    stairs: list[tuple[int, int]] = field(default_factory=list)
    """A cube's least size, and how far apart its sizes are: 0 and 1 for sizes of all kinds."""

    steps: list[NDArray[np.int64]] = field(default_factory=list)

    def _ask(
        self, law: str, values: NDArray[np.float64], scale: float, step: float, *least: int
    ) -> NDArray[np.float64]:
        if scale:  # what is only put on a grid has been released
            self.stairs.append((least[0], int(1 / step)) if any(least) else (0, 1))
            self.laws.append((law, Fraction(step) / Fraction(scale)))
            self.steps.append(np.rint(np.asarray(values) / step).astype(np.int64))
            if len(self.laws) == self.most:
                raise EnoughError
        found: NDArray[np.float64] = getattr(self.noise, law)(values, scale, step, *least)
        return found

    def laplace(self, values: NDArray[np.float64], scale: float, step: float) -> NDArray[np.float64]:
        return self._ask("laplace", values, scale, step)

    def cube(self, values: NDArray[np.float64], scale: float, step: float, least: int = 0) -> NDArray[np.float64]:
        return self._ask("cube", values, scale, step, least)


def worst_loss(name: str, question: BatchQuestion, epsilon: float, facts: Facts = NO_FACTS) -> Fraction:
    """Return the largest loss over all neighbours. The question's records are turned over in place, and back."""
    mechanism, groups = MECHANISMS[name], question.records.protected

    def drawn(most: int | None) -> Watch:
        watch = Watch(Seeded(np.random.default_rng(0)), most)
        with suppress(EnoughError):
            mechanism.release(question, facts, epsilon, 0.0, watch)  # type: ignore[arg-type]
        return watch

    here = drawn(None)
    if not here.laws:
        return Fraction(0)
    columns, worst = [], Fraction(0)
    for person in range(len(groups)):
        groups[person] ^= 1
        there = drawn(len(here.laws))
        groups[person] ^= 1
        assert (there.laws, there.stairs) == (here.laws, here.stairs)
        moved = [b - a for a, b in zip(here.steps, there.steps, strict=True)]
        farthest = (
            # By whole stairs: `test_laws_cube` enumerates what one costs.
            -(-int(np.abs(of).max()) // apart) * apart if law == "cube" else int(np.abs(of).sum())
            for (law, _), (_, apart), of in zip(here.laws, here.stairs, moved, strict=True)
        )
        worst = max(worst, sum((far * rate for far, (_, rate) in zip(farthest, here.laws, strict=True)), Fraction(0)))
        columns.append(np.concatenate(moved))
    generator, before = np.random.default_rng(len(groups)), groups.copy()
    for _ in range(2):
        groups[:] = generator.integers(0, 2, len(groups))
        groups[:2] = 0, 1  # no group is empty
        there = drawn(len(here.laws))
        assert (there.laws, there.stairs) == (here.laws, here.stairs)
        expected = np.concatenate(here.steps) + np.array(columns).T @ (groups != before)
        assert np.concatenate(there.steps).tolist() == expected.tolist()
        groups[:] = before
    return worst


def batches(people: int) -> Iterator[NDArray[np.float64]]:
    """Scores and decisions of several models, of one, of models that agree, and rows that repeat."""
    generator = np.random.default_rng(people)
    yield generator.random((5, people))
    yield (generator.random((4, people)) < 0.4).astype(np.float64)
    yield generator.random((1, people))
    common = generator.normal(size=people)
    yield 1 / (1 + np.exp(-common - 0.3 * generator.normal(size=(30, people))))
    yield np.repeat(generator.random((1, people)), 6, axis=0)
    yield np.repeat([[0.2], [0.7]], people, axis=1)


def asked(predictions: NDArray[Any], metric: str = "sp") -> BatchQuestion:
    people = predictions.shape[1]
    protected, labels = (np.arange(people) % 2).astype(np.uint8), (np.arange(people) // 2 % 2).astype(np.uint8)
    return BatchQuestion(metric, predictions, Records(labels, protected, ()))


def settings(people: int) -> list[tuple[NDArray[np.float64], float]]:
    return list(product(batches(people), EPSILONS))


def check(name: str, predictions: NDArray[Any], epsilon: float, metric: str = "sp") -> None:
    loss = worst_loss(name, asked(predictions, metric), epsilon)
    assert 0.99 * epsilon <= loss <= Fraction(written(epsilon))


@pytest.mark.few(1)
@pytest.mark.parametrize("name", MECHANISM_NAMES)
def test_every_number_of_people_up_to_60_costs_epsilon_at_worst(name: str) -> None:
    # Of thirty settings one for each third number of people, another each time; all of them in the slow test below.
    for people in FEW[::3] if name != "low-rank" else (4, 9, 21, 40, 60):
        every = settings(people)
        check(name, *every[7 * people % len(every)])


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "people"), [("cells", 100), ("cube", 900)])
def test_more_people_cost_epsilon_at_worst(name: str, people: int) -> None:
    every = settings(people)
    check(name, *every[(people // 100) % len(every)])


@pytest.mark.parametrize(("name", "metric"), [("cells", "eo"), ("cube", "sp"), ("low-rank", "oad")])
def test_decisions_that_are_counted_cost_epsilon_at_worst(name: str, metric: str) -> None:
    generator = np.random.default_rng(5)
    for people, models in ((9, 1), (24, 3), (41, 30)):
        decisions = generator.random((models, people)) < 0.4
        decisions[models // 2 :] ^= decisions[:1]  # some go together, and some are alike
        check(name, decisions, 1.0, metric)


@pytest.mark.few(1)
@pytest.mark.parametrize("people", [200, 230])
def test_people_who_are_put_into_the_cells_of_a_part_of_them_cost_epsilon_at_worst(
    people: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fairwall.laws.choice.public_batch.FEW", 60)
    monkeypatch.setattr("fairwall.laws.choice.public_batch._RAREST", 20)
    monkeypatch.setattr("fairwall.laws.choice.public_batch._SOME", 5)
    monkeypatch.setattr("fairwall.laws.choice.public_batch.AT_ONCE", 300)
    for predictions in batches(people):
        question = asked(predictions)
        assert len(question.asked.few.labels) < people / 2
        check("cells", predictions, 0.5)


@pytest.mark.slow(seconds=70)
@pytest.mark.parametrize("name", MECHANISM_NAMES)
def test_settings_of_up_to_60_people_cost_epsilon_at_worst(name: str) -> None:
    for people in FEW:
        for number, (predictions, epsilon) in enumerate(settings(people)):
            if (number + people) % (5 if name == "low-rank" else 3) == 0:  # which takes 3 ms a flip
                check(name, predictions, epsilon)
                assert worst_loss(name, asked(predictions), epsilon, N0_BOUGHT) <= Fraction(written(epsilon))
    for metric in ("eo", "eodds_max", "di"):
        for people in range(8, 61, 4):
            for predictions in batches(people):
                check(name, predictions, 0.5, metric)


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISM_NAMES)
@pytest.mark.parametrize("people", MANY)
def test_up_to_3000_people_cost_epsilon_at_worst(name: str, people: int) -> None:
    for number, (predictions, epsilon) in enumerate(settings(people)):
        # Of so many people's flips a setting takes seconds, of low-rank's tens of seconds.
        every = {"cells": 5, "cube": 10, "low-rank": 30}[name]
        if number % every == people % every:
            check(name, predictions, epsilon)


def test_cells_that_share_a_person_would_cost_more(monkeypatch: pytest.MonkeyPatch) -> None:
    # The broken twin: the first person is counted in the last cell too.
    def overlapping(self: Records, cell_of: NDArray[np.intp], cells: int) -> NDArray[np.float64]:
        found = np.bincount(cell_of[self.protected == 0], minlength=cells).astype(np.float64)
        found[(cell_of[0] + 1) % cells] += self.protected[0] == 0
        return found

    monkeypatch.setattr(Records, "disadvantaged_in", overlapping)
    for people in range(21, 61, 3):
        assert worst_loss("cells", asked(next(batches(people))), 1.0) == 2


@pytest.mark.parametrize("name", ["cube", "low-rank"])
def test_a_range_that_leaves_somebody_out_would_cost_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # The broken twin: a person beyond the range of the others is not cut off at it.
    before = Records.sums_of_disadvantaged

    def beyond(self: Records, members: NDArray[np.bool_], values: NDArray[np.float64]) -> NDArray[np.float64]:
        return before(self, members, np.where(np.arange(values.shape[1]) == 3, 1.5 * values, values))

    monkeypatch.setattr(Records, "sums_of_disadvantaged", beyond)
    predictions = (np.arange(40) % 2 == np.arange(2)[:, np.newaxis]).astype(np.float64)
    assert worst_loss(name, asked(predictions), 1.0) == Fraction(3, 2)


def test_the_size_of_a_cube_is_drawn_with_the_very_odds_that_make_its_law(monkeypatch: pytest.MonkeyPatch) -> None:
    for sides in (1, 3, 26):
        # Of the sampler's own coins: P(T = t) is that of a sum of d+1 geometric numbers, C(t+d, d) r^t, times the
        # coins' odds; it must be r^t (2t+1)^d but for one constant, and then P(z) ~ r^max|z|,
        # `fairwall.laws.noise.linf_ball`.
        constants, bits = set(), random.SystemRandom()
        for size in (0, 1, 2, 7, 1000, 10**9):
            coins = []

            def told(of: int, size: int = size, coins: list[Fraction] = coins) -> int:
                coins.append(Fraction(2 * size + 1, of))
                return 0

            monkeypatch.setattr(sampler, "geometric", lambda _rate, _count, _bits, size=size: np.array([size]))
            monkeypatch.setattr(bits, "randrange", told)
            assert sampler._cube_size(Fraction(1, 3), sides, bits) == size
            weight = Fraction(1)
            for k, odds in enumerate(coins, start=1):
                weight *= Fraction(size + k, k) * odds
            assert len(coins) == sides
            constants.add(weight / (2 * size + 1) ** sides)
        assert len(constants) == 1


def decimals() -> Iterator[float]:
    """1,000 amounts as people write them."""
    rng = np.random.default_rng(6)
    for digits in range(1000):
        yield float(f"{rng.random() * 10.0 ** int(rng.integers(-2, 2)):.{1 + digits % 12}g}")


def test_noise_of_any_decimal_costs_no_more_than_that_decimal() -> None:
    """Half of all scales 1/epsilon are a little too small when they are rounded to the nearest float64."""
    for epsilon in decimals():
        exact, tight = Fraction(written(epsilon)), 1 - Fraction(1, 2**50)
        assert tight * exact <= 1 / Fraction(cells_scale(epsilon)) <= exact
        for sums, known in ((1, False), (25, False), (26, False), (400, False), (3, True)):
            scales = cube_scales(sums, epsilon, size_known=known)
            spent = 1 / Fraction(scales.scale) + (1 / Fraction(scales.size) if scales.size else 0)
            assert tight * exact <= spent <= exact


@pytest.mark.check
def test_so_it_does_in_the_mechanisms() -> None:
    rng = np.random.default_rng(3)
    batch = rng.random((2, 12))
    for epsilon in list(decimals())[::25]:
        for name in MECHANISM_NAMES:
            watch = Watch(Seeded(np.random.default_rng(0)))
            MECHANISMS[name].release(asked(batch), NO_FACTS, epsilon, 0.0, watch)  # type: ignore[arg-type]
            ((law, rate),) = watch.laws
            # In whole steps, a person moves cells by one, and other sums by all the steps to 1.
            step = 1 if law == "laplace" else cube_step(epsilon, 12)
            assert rate / Fraction(step) <= Fraction(written(epsilon))


def test_scales_that_are_rounded_to_the_nearest_are_found_out() -> None:
    """The broken twin."""
    too_small = [epsilon for epsilon in decimals() if 1 / Fraction(1 / epsilon) > Fraction(written(epsilon))]
    assert 200 < len(too_small) < 800
