"""Everybody from gaps of precision: in every small world, with few answers, and as far as a budget reaches."""

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.mechanisms.mechanism import BatchQuestion
from compliance.records.people import Records
from developer.reveal.strategies.predictive_parity import play
from developer.reveal.strategies.strategy import Reveal, StrategyInputs

Bits = NDArray[np.uint8]


class Precision:
    """Answers from the metric's own code, and keeps count."""

    def __init__(self, a: Bits, y: Bits) -> None:
        self._records, self.asked = Records(y, a, ()), 0

    def size(self, row: NDArray[np.float64]) -> float:
        raise NotImplementedError

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        self.asked += len(rows)
        return BatchQuestion("ppv", rows, self._records).gaps()


def population(n: int, n0: int, positive: int, seed: int) -> tuple[Bits, Bits]:
    rng = np.random.default_rng(seed)
    return (rng.permutation(n) >= n0).astype(np.uint8), (rng.permutation(n) < positive).astype(np.uint8)


def mixed(n: int) -> Iterator[Bits]:
    for bits in itertools.product((0, 1), repeat=n):
        if 0 < sum(bits) < n:
            yield np.array(bits, np.uint8)


def revealed(auditor: Precision, y: Bits, seed: int = 0, **changes: object) -> Reveal:
    rng = np.random.default_rng(seed)
    scores = rng.beta(0.5, 2, y.size)
    whole: dict[str, object] = {
        "people": y.size, "base": lambda: scores, "prior": lambda: np.ones(y.size, np.uint8), "auditor": auditor,
        "rng": rng, "queries": 10_000, "perturbation": 1.0, "labels": y,
    }  # fmt: skip
    return play(StrategyInputs(**(whole | changes)))  # type: ignore[arg-type]


@pytest.mark.parametrize("n", [2, 3, *(pytest.param(n, marks=pytest.mark.slow) for n in (4, 5, 6))])
def test_every_small_world_with_both_labels_is_revealed(n: int) -> None:
    for a, y in itertools.product(mixed(n), mixed(n)):
        auditor = Precision(a, y)
        reveal = revealed(auditor, y, n)
        assert np.array_equal(reveal.guess, a)
        assert reveal.polarity_known
        assert auditor.asked <= n - 1


def test_labels_all_alike_tell_nothing_and_mixed_ones_tell_all() -> None:
    for n in (2, 3, 4):
        sets = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
        for bits in itertools.product((0, 1), repeat=n):
            y = np.array(bits, np.uint8)
            seen = {tuple(Precision(a, y).gaps(sets).tolist()) for a in mixed(n)}
            assert len(seen) == (2**n - 2 if 0 < y.sum() < n else 1)
    ones = np.ones(4, np.uint8)
    auditor = Precision(np.array([0, 0, 1, 1], np.uint8), ones)
    assert revealed(auditor, ones).guess.tolist() == [1, 1, 1, 1]
    assert auditor.asked == 0


def test_one_answer_about_a_prime_number_of_people_tells_both_counts() -> None:
    for size in (2, 3, 13, 97):
        for hits in {1, size // 3, size // 2, size - 1} - {0}:
            t, rest = (grid.ravel() for grid in np.meshgrid(np.arange(hits + 1), np.arange(size - hits + 1)))
            inside = (t + rest > 0) & (t + rest < size)
            t, p = t[inside], (t + rest)[inside]
            gaps = np.sort(np.append((hits - t) / (size - p) - t / p, 0.0))
            assert np.diff(gaps).min(initial=1) >= 15 / size**4


@pytest.mark.parametrize(
    ("n", "n0", "positive", "seeds", "most"),
    [
        (100, 10, 25, 6, 24),
        *(pytest.param(*world, marks=pytest.mark.check) for world in ((100, 99, 25, 5, 12), (100, 10, 1, 5, 45))),
        pytest.param(1000, 104, 250, 20, 134, marks=pytest.mark.slow),
    ],
)
def test_everybody_falls_to_few_answers(n: int, n0: int, positive: int, seeds: int, most: int) -> None:
    for seed in range(seeds):
        a, y = population(n, n0, positive, seed)
        auditor = Precision(a, y)
        assert np.array_equal(revealed(auditor, y, seed).guess, a)
        assert auditor.asked <= most


def test_people_who_are_all_of_one_group_but_for_those_left_out() -> None:
    # 97 is the prime: the three who are left out are the last ones of the larger class.
    y = (np.arange(100) < 25).astype(np.uint8)
    for label, group in itertools.product((0, 1), (0, 1)):
        labels = y if label else 1 - y
        for pattern in itertools.product((0, 1), repeat=3):
            if any(pattern):
                a = np.full(100, group, np.uint8)
                a[97:] ^= np.array(pattern, np.uint8)
                auditor = Precision(a, labels)
                assert np.array_equal(revealed(auditor, labels).guess, a)
                assert auditor.asked == 4


def test_fewer_answers_tell_fewer_people() -> None:
    right = []
    for queries in (0, 1, 8, 16, 30):
        found = []
        for seed in range(5):
            a, y = population(100, 10, 25, seed)
            auditor = Precision(a, y)
            guess = revealed(auditor, y, seed, queries=queries).guess
            assert auditor.asked <= queries
            found.append(float(((guess == a)[a == 0].mean() + (guess == a)[a == 1].mean()) / 2))
        right.append(math.fsum(found) / len(found))
    assert right[0] == 0.5
    assert right[-1] == 1.0
    assert right == sorted(right)


def test_what_it_cannot_be_played_with() -> None:
    a, y = population(10, 3, 4, 0)
    with pytest.raises(ValueError, match="free decisions"):
        revealed(Precision(a, y), y, perturbation=0.1)
    with pytest.raises(ValueError, match="labels"):
        revealed(Precision(a, y), y, labels=None)
