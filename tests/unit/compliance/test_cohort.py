"""Sums by group: how far one person moves them, the noise that hides it, and what tellings come to together.

Every statistical test has a fixed seed and a false-alarm rate of 1e-7.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count, product
from typing import Any

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from compliance.answers import statistics
from compliance.answers.charging import DEVELOPER
from compliance.answers.statistics import Cohort, bounded, game_cohort
from compliance.noise import sampling as noise
from compliance.noise.sampling import GAUSSIAN_FINENESS, Seeded, step_for
from fairwall.laws.noise.gaussian import gaussian_delta, gaussian_epsilon
from fairwall.rpc.errors import Refusal
from fairwall.rpc.turns import generator

FALSE_ALARM = 1e-7
EPSILON, DELTA, MULTIPLIER = 4.0, 1e-5, 3.0

Rows = NDArray[np.float64]


def opened(protected: Any, seed: bytes | None = b"seed") -> Cohort:
    return game_cohort("deal", np.asarray(protected, dtype=np.uint8), EPSILON, DELTA, seed)


HONEST = opened([0, 1])


def exact(rows: Rows, protected: NDArray[np.uint8]) -> Rows:
    return replace(HONEST, protected=protected).exact(rows)


def bounded_rows(n: int) -> Iterator[Rows]:
    """Extreme and random rows of norm 1 at most, and longer ones as far as they are not refused."""
    for width in (1, 2, 3):
        axes = np.vstack([np.eye(width), -np.eye(width), np.zeros((1, width))])
        for chosen in product(axes, repeat=n) if n <= 2 else ():
            yield np.array(chosen)
        rng = np.random.default_rng([n, width])
        for length in (0.5, 1.0, 1 + 1e-9, 3.0):
            rows = rng.normal(size=(n, width))
            yield rows * length / np.linalg.norm(rows, axis=1, keepdims=True)


def reach(of: Callable[[Rows, NDArray[np.uint8]], Iterator[Rows]], bound: Callable[[Rows], Rows] = bounded) -> float:
    """Measure how far the exact sums of two neighbours are apart at most, over all worlds of up to three people."""
    furthest = 0.0
    for n in (1, 2, 3):
        for sent in bounded_rows(n):
            try:
                rows = bound(sent)
            except Refusal:
                continue
            for bits in product((0, 1), repeat=n):
                protected = np.array(bits, dtype=np.uint8)
                here = exact(rows, protected)
                furthest = max([furthest, *(float(np.linalg.norm(here - there)) for there in of(rows, protected))])
    return furthest


def flips(rows: Rows, protected: NDArray[np.uint8]) -> Iterator[Rows]:
    for person in range(len(protected)):
        other = protected.copy()
        other[person] ^= 1
        yield exact(rows, other)


def removals(rows: Rows, protected: NDArray[np.uint8]) -> Iterator[Rows]:
    for person in range(len(protected)):
        yield exact(np.delete(rows, person, axis=0), np.delete(protected, person))


def test_a_flip_moves_the_sums_by_2_and_a_record_by_the_root_of_2_at_most_and_some_do() -> None:
    assert reach(flips) == pytest.approx(statistics.SENSITIVITY, rel=1e-12)
    assert reach(removals) == pytest.approx(math.sqrt(2), rel=1e-12)


def test_rows_that_are_not_bounded_are_found_out() -> None:
    assert reach(flips, bound=lambda rows: rows) > 4


def test_sums_err_by_less_than_the_grids_step_however_many_people_there_are() -> None:
    n = 50_000
    protected = np.ones(n, np.uint8)
    rows = np.full((n, 1), 1 / 3)
    finest = step_for(0.0, GAUSSIAN_FINENESS, n)
    true = math.fsum(rows[:, 0])
    assert abs(opened(protected).exact(rows)[1, 0] - true) < finest / 100
    # Added up one after the other, as numpy adds up the columns of rows, they would not.
    assert abs(rows.cumsum()[-1] - true) > finest


# Twins.


@dataclass(frozen=True, eq=False)
class ByCount(Cohort):
    """Broken: the noise is a function of how many requests there were, not of the request."""

    asked: Iterator[int]

    def summed(self, _: str, rows: Rows, multiplier: float) -> Rows:
        return super().summed(str(next(self.asked)), rows, multiplier)


@dataclass(frozen=True, eq=False)
class OneSeed(Cohort):
    """Broken: every request gets the same noise."""

    def summed(self, _: str, rows: Rows, multiplier: float) -> Rows:
        return super().summed("", rows, multiplier)


@dataclass(frozen=True, eq=False)
class Shared(Cohort):
    """Broken: one draw for both groups, and one for a group's sum and its size."""

    def summed(self, request_id: str, rows: Rows, multiplier: float) -> Rows:
        exact = self.exact(rows)
        drawn = generator(f"{self.seed!r} {request_id}".encode()).normal(0, 2 * multiplier)
        return np.asarray(exact + drawn)


def twin(kind: type[Cohort], honest: Cohort, *more: Any) -> Cohort:
    return kind(honest.dataset, honest.protected, honest.ledger, honest.delta, honest.seed, *more)


def is_by_request(cohort: Cohort) -> bool:
    """Whether the same request gets the same noise, and another one other noise, whatever the order."""
    rows = np.zeros((2, 2))
    a, b, again = (cohort.summed(name, rows, MULTIPLIER) for name in ("a", "b", "a"))
    return bool(np.array_equal(a, again) and not (a == b).any())


def test_noise_belongs_to_the_request() -> None:
    honest = opened([0, 1])
    assert is_by_request(honest)
    assert not is_by_request(twin(ByCount, honest, count()))
    assert not is_by_request(twin(OneSeed, honest))
    other = replace(honest, seed=b"other").summed("a", np.zeros((2, 2)), MULTIPLIER)
    assert not (other == honest.summed("a", np.zeros((2, 2)), MULTIPLIER)).any()


def noise_of(cohort: Cohort, requests: int = 600) -> Rows:
    """Draw noise: a row a request, both groups' sums and sizes side by side."""
    rows = np.zeros((3, 2))
    exact = cohort.exact(rows)
    return np.array([(cohort.summed(f"r{r}", rows, MULTIPLIER) - exact).ravel() for r in range(requests)])


def is_the_law(noise: Rows, sigma: float) -> bool:
    """Whether every number's noise is normal with this standard deviation, and none tells of another's."""
    tests = noise.shape[1] * (noise.shape[1] + 3) // 2
    values = [float(scipy.stats.kstest(column, scipy.stats.norm(scale=sigma).cdf).pvalue) for column in noise.T]
    chi = np.square(noise / sigma).sum(axis=0)
    values += (2 * np.minimum(*(law(chi, len(noise)) for law in (scipy.stats.chi2.cdf, scipy.stats.chi2.sf)))).tolist()
    pairs = [(a, b) for a in range(noise.shape[1]) for b in range(a)]
    values += [scipy.stats.pearsonr(noise[:, a], noise[:, b]).pvalue for a, b in pairs]
    return bool(min(values) > FALSE_ALARM / tests)


def test_every_number_has_noise_of_its_own_of_twice_the_multiplier(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = opened([0, 1, 1])
    noise = noise_of(honest)
    assert is_the_law(noise, 2 * MULTIPLIER)
    step = step_for(2 * MULTIPLIER, GAUSSIAN_FINENESS, 3.0)
    assert all((number / step).is_integer() for number in noise.ravel().tolist())
    assert not is_the_law(noise_of(twin(Shared, honest)), 2 * MULTIPLIER)
    # Enough for a record, but not for a flip.
    monkeypatch.setattr(statistics, "SENSITIVITY", math.sqrt(2))
    assert not is_the_law(noise_of(honest), 2 * MULTIPLIER)


def test_the_operating_systems_noise_has_the_same_law() -> None:
    assert is_the_law(noise_of(opened([0, 1, 1], seed=None), 200), 2 * MULTIPLIER)


@pytest.mark.check
def test_a_loss_is_what_the_worst_neighbours_show(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[float] = []

    class Watched(Seeded):
        def gaussian(self, values: Rows, sigma: float, step: float) -> Rows:
            drawn.append(sigma)
            return super().gaussian(values, sigma, step)

    monkeypatch.setattr(noise, "Seeded", Watched)
    rows, multiplier, epsilon = np.array([[1.0], [0.5]]), 0.5, 1.5
    worlds = [opened(protected) for protected in ([0, 1], [1, 1])]
    apart = worlds[0].exact(rows) - worlds[1].exact(rows)
    assert np.linalg.norm(apart) == pytest.approx(statistics.SENSITIVITY)
    told = [np.array([world.summed(f"r{r}", rows, multiplier) for r in range(3000)]) for world in worlds]
    # Never less noise than is claimed, and no more than the grid asks for.
    assert 1 <= drawn[0] / (multiplier * statistics.SENSITIVITY) < 1 + 1e-5
    claimed = worlds[0].loss(multiplier)
    assert gaussian_epsilon(drawn[0] / statistics.SENSITIVITY, DELTA) <= claimed.epsilon
    assert gaussian_epsilon(drawn[0] / statistics.SENSITIVITY, DELTA) == pytest.approx(claimed.epsilon, rel=1e-4)
    # And the answers themselves: the likelihood ratio's test has the delta of the law, which is some way above 0.
    middle = (worlds[0].exact(rows) + worlds[1].exact(rows)) / 2
    scale = drawn[0] ** 2
    losses = [np.sum((answers - middle) * apart, axis=(1, 2)) / scale for answers in told]
    here, there = (float((loss > epsilon).mean()) for loss in losses)
    wanted = gaussian_delta(multiplier, epsilon)
    # Seeds draw both worlds' noise alike: no more deviations than one sample's and e^epsilon another's.
    deviation = math.sqrt(here * (1 - here) / 3000) + math.exp(epsilon) * math.sqrt(there * (1 - there) / 3000)
    assert abs(here - math.exp(epsilon) * there - wanted) < 5.4 * deviation
    assert 5.4 * deviation < wanted / 2, "the sample is too small to tell"


def test_tellings_of_one_multiplier_compose_as_one_gaussian() -> None:
    cohort, rows = opened([0, 1]), np.zeros((2, 1))
    for told in range(1, 5):
        cohort.answer(DEVELOPER, f"r{told}", b"", rows, MULTIPLIER)
        exact = gaussian_epsilon(MULTIPLIER / math.sqrt(told), DELTA)
        assert exact <= cohort.spent <= exact * (1 + 1e-3)


def test_the_same_request_is_told_again_and_not_charged() -> None:
    cohort, rows = opened([0, 1]), np.full((2, 1), 0.5)
    first = cohort.answer(DEVELOPER, "r", b"d", rows, MULTIPLIER)
    spent = cohort.spent
    again = cohort.answer(DEVELOPER, "r", b"d", rows, MULTIPLIER)
    assert np.array_equal(cohort.sums(first), cohort.sums(again))
    assert np.array_equal(cohort.sums(first), cohort.summed("r", rows, MULTIPLIER))
    assert cohort.spent == spent
