"""Everybody from verdicts: in every small world, near the information bound, and as far as a budget reaches."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.mechanisms.selection import PassFail
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from developer.reveal.strategies.strategy import PublicTerms, Reveal, StrategyInputs
from developer.reveal.strategies.verdicts import play


class Verdicts:
    """Answers with the mechanism itself, and keeps count."""

    def __init__(self, a: NDArray[np.uint8], threshold: float = 0.1, metric: str = "sp") -> None:
        self._records = Records(np.zeros(a.size, np.uint8), a, ())
        self._mechanism, self._metric, self.asked = PassFail(threshold), metric, 0

    def size(self, row: NDArray[np.float64]) -> float:
        raise NotImplementedError

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        assert rows.min() >= 0
        assert rows.max() <= 1
        self.asked += len(rows)
        question = BatchQuestion(self._metric, rows, self._records)
        return self._mechanism.release(question, NO_FACTS, math.inf, 0.0, Seeded(np.random.default_rng(0))).values


def population(n: int, n0: int, seed: int) -> NDArray[np.uint8]:
    a = np.ones(n, np.uint8)
    a[np.random.default_rng(seed).permutation(n)[:n0]] = 0
    return a


def everybody(n: int) -> Iterator[NDArray[np.uint8]]:
    for bits in itertools.product((0, 1), repeat=n):
        if 0 < sum(bits) < n:
            yield np.array(bits, np.uint8)


def revealed(
    a: NDArray[np.uint8], auditor: Verdicts, seed: int = 0, threshold: float = 0.1, **changes: object
) -> Reveal:
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.5, 2, a.size)
    whole: dict[str, object] = {
        "people": a.size, "base": lambda: scores, "prior": lambda: np.ones(a.size, np.uint8), "auditor": auditor,
        "rng": rng, "queries": 10_000, "perturbation": 1.0,
    }  # fmt: skip
    return play(StrategyInputs(**(whole | changes)), threshold)  # type: ignore[arg-type]


def partitioned(guess: NDArray[np.uint8], a: NDArray[np.uint8]) -> bool:
    return np.array_equal(guess, a) or np.array_equal(guess, 1 - a)


def test_every_small_world_is_partitioned() -> None:
    for threshold in (0.1, 1 / 3):
        for n in (2, 3, 5):
            for seed, a in enumerate(everybody(n)):
                reveal = revealed(a, Verdicts(a, threshold), seed, threshold)
                assert partitioned(reveal.guess, a)
                assert reveal.polarity_known == (2 * a.sum() != n)
                if 2 * a.sum() > n:
                    assert np.array_equal(reveal.guess, a)


@settings(max_examples=20, deadline=None)
@given(st.integers(8, 150), st.floats(0, 1), st.integers(0, 2**32), st.floats(0.03, 0.3))
def test_whatever_the_sizes_and_the_limit(n: int, share: float, seed: int, threshold: float) -> None:
    a = population(n, 1 + round(share * (n - 2)), seed)
    auditor = Verdicts(a, threshold, "abs_sp")
    reveal = revealed(a, auditor, seed, threshold, queries=3_000)
    # Large groups that h0 says nothing about: then no row may ever fail, and nothing is learnt.
    assert partitioned(reveal.guess, a) or (auditor.asked == 3_000 and not reveal.polarity_known)


@pytest.mark.parametrize(
    ("n", "n0", "most", "median"),
    [(100, 10, 56, 51.5), pytest.param(1000, 104, 534, 500.0, marks=pytest.mark.slow)],
)
def test_everybody_falls_to_little_more_verdicts_than_the_information_bound(
    n: int, n0: int, most: int, median: float
) -> None:
    asked = []
    for seed in range(20):
        a = population(n, n0, seed)
        auditor = Verdicts(a)
        assert np.array_equal(revealed(a, auditor, seed).guess, a)
        asked.append(auditor.asked)
    assert max(asked) <= most
    assert np.median(asked) <= median
    assert min(asked) >= math.log2(math.comb(n, n0))


@pytest.mark.check
def test_a_gap_at_the_limit_itself_does_not_mislead() -> None:
    # One accepted of ten and none of the ten others has the gap 0.1: rounding decides the verdict.
    for seed, threshold in itertools.product(range(30), (0.1, 0.2, 0.3, np.nextafter(0.2, 0), np.nextafter(0.3, 0))):
        a = population(20, 10, seed)
        assert partitioned(revealed(a, Verdicts(a, float(threshold)), seed, float(threshold)).guess, a)


def test_a_public_size_saves_verdicts_and_settles_who_is_disadvantaged() -> None:
    asked: dict[bool, int] = {True: 0, False: 0}
    for seed, public in itertools.product(range(4), (True, False)):
        a = population(100, 80, seed)
        auditor = Verdicts(a)
        reveal = revealed(a, auditor, seed, terms=PublicTerms(n0=80 if public else None))
        assert np.array_equal(reveal.guess, a if public else 1 - a)
        asked[public] += auditor.asked
    assert asked[True] < asked[False]


def test_fewer_verdicts_tell_fewer_people() -> None:
    right = {}
    for queries in (0, 12, 25, 40, 60):
        found = []
        for seed in range(4):
            a = population(100, 10, seed)
            auditor = Verdicts(a)
            guess = revealed(a, auditor, seed, queries=queries).guess
            assert auditor.asked <= queries
            found.append(((guess == a)[a == 0].mean() + (guess == a)[a == 1].mean()) / 2)
        right[queries] = float(np.mean(found))
    assert right[0] == 0.5
    assert right[60] == 1.0
    assert list(right.values()) == sorted(right.values())


def test_what_it_cannot_be_played_with() -> None:
    a = population(10, 3, 0)
    with pytest.raises(ValueError, match="free rows"):
        revealed(a, Verdicts(a), perturbation=0.1)
    with pytest.raises(ValueError, match="above 0"):
        revealed(a, Verdicts(a), threshold=0.0)
