"""Packed queries against the arithmetic that compliance uses."""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from compliance.records.metrics import MetricSums, gaps
from developer.reveal.strategies import precision as how
from developer.reveal.strategies import splitting, sums, superincreasing
from developer.reveal.strategies.splitting import TAIL, count_law, count_range, subset_code
from developer.reveal.strategies.strategy import PublicTerms, Reveal, StrategyInputs
from developer.reveal.strategies.sums import answers_needed
from fairwall.laws.metrics.answer_precision import Precision, written_down
from fairwall.laws.metrics.values import sums_over

PLAYS: dict[str, Callable[[StrategyInputs], Reveal]] = {"packed": superincreasing.play, "splitting": splitting.play}


@dataclass
class Service:
    """Answer as compliance does, check every row, and keep count."""

    a: NDArray[np.uint8]
    base: NDArray[np.float64]
    perturbation: float = 1
    metric: str = "sp"
    precision: Precision = "float64"
    asked: int = field(default=0, init=False)
    sizes: int = field(default=0, init=False)

    def size(self, row: NDArray[np.float64]) -> float:
        assert self.perturbation >= 1
        self.sizes += 1
        return float(self._answer(row[None])[0])

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        self.asked += len(rows)
        return self._answer(rows)

    def _answer(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        assert rows.min() >= 0
        assert rows.max() <= 1
        assert self.perturbation >= 1 or np.abs(rows - self.base).max() <= self.perturbation
        one, zero = self.a == 1, self.a == 0
        groups = MetricSums(sums_over(one, rows), sums_over(zero, rows), int(one.sum()), int(zero.sum()))
        return written_down(gaps(self.metric, [groups]), self.precision)


def logistic(n: int, seed: int) -> NDArray[np.float64]:
    """Scores as a logistic regression gives them, many near 0."""
    return 1 / (1 + np.exp(2.5 - 2 * np.random.default_rng([seed, 1]).normal(size=n)))


def population(n: int, n0: int, seed: int) -> NDArray[np.uint8]:
    a = np.ones(n, np.uint8)
    a[np.random.default_rng([seed, 2]).permutation(n)[:n0]] = 0
    return a


def everybody(n: int) -> Iterator[NDArray[np.uint8]]:
    for bits in itertools.product((0, 1), repeat=n):
        if 0 < sum(bits) < n:
            yield np.array(bits, np.uint8)


def hand_for(
    service: object, base: NDArray[np.float64], terms: PublicTerms, seed: int, **changes: object
) -> StrategyInputs:
    n = base.size
    whole = {
        "people": n,
        "base": lambda: base,
        "prior": lambda: np.ones(n, np.uint8),
        "auditor": service,
        "rng": np.random.default_rng([seed, 3]),
        "queries": 10 * n,
        "perturbation": 1.0,
        "terms": terms,
    }
    return StrategyInputs(**(whole | changes))


def right(
    name: str,
    a: NDArray[np.uint8],
    *,
    base: NDArray[np.float64] | None = None,
    b: float = 1,
    metric: str = "sp",
    precision: Precision = "float64",
    told: bool = True,
    n0: int | None = None,
    seed: int = 0,
) -> tuple[bool, int]:
    """Play; say whether all are right, for absolute gaps up to polarity, and how many answers it took."""
    base = logistic(a.size, seed) if base is None else base
    service = Service(a, base, b, metric, precision)
    terms = PublicTerms(metric=metric, precision=precision if told else None, n0=n0)
    reveal = PLAYS[name](hand_for(service, base, terms, seed, perturbation=b))
    exact = bool((reveal.guess == a).all())
    if metric.startswith("abs_"):
        exact |= bool((reveal.guess == 1 - a).all())
        exact &= reveal.polarity_known == (2 * int(a.sum()) != a.size)
        named = bool((reveal.guess == a).all()) if n0 is not None else reveal.guess.sum() * 2 > a.size
        assert not (reveal.polarity_known and exact) or named
    assert service.sizes <= 1
    assert n0 is None or service.sizes == 0
    return exact, service.asked + service.sizes


@pytest.mark.parametrize(
    ("name", "n", "n0", "setting", "most"),
    [
        ("packed", 100, 10, {"b": 0.1}, 4),
        pytest.param("packed", 1000, 104, {}, 21, marks=pytest.mark.slow(seconds=24)),
        pytest.param("packed", 1000, 104, {"b": 0.1}, 25, marks=pytest.mark.slow(seconds=24)),
        pytest.param("splitting", 100, 10, {"precision": 4}, 7, marks=pytest.mark.check),
        pytest.param("splitting", 100, 10, {"precision": "float32", "told": False}, 5, marks=pytest.mark.check),
        ("splitting", 100, 10, {"metric": "abs_sp", "b": 0.1}, 5),
        pytest.param("splitting", 1000, 104, {}, 13, marks=pytest.mark.slow(seconds=24)),
        pytest.param("splitting", 1000, 104, {"precision": 4, "n0": 104}, 63, marks=pytest.mark.slow(seconds=24)),
        pytest.param(
            "splitting", 1000, 104, {"precision": 4, "n0": 104, "b": 0.1}, 108, marks=pytest.mark.slow(seconds=24)
        ),
        pytest.param("splitting", 1000, 104, {"b": 0.1}, 16, marks=pytest.mark.slow(seconds=24)),
        pytest.param("splitting", 1000, 104, {"metric": "abs_sp"}, 14, marks=pytest.mark.slow(seconds=24)),
    ],
)
def test_everybody_is_right_in_eight_worlds(name: str, n: int, n0: int, setting: dict[str, object], most: int) -> None:
    played = [right(name, population(n, n0, seed), seed=seed, **setting) for seed in range(8)]
    assert all(exact for exact, _ in played)
    assert max(answers for _, answers in played) <= most


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_rounded_answers_take_more(seed: int) -> None:
    exact, answers = right("splitting", population(1000, 104, seed), precision=4, seed=seed)
    assert exact
    assert answers <= 90


@pytest.mark.slow
def test_ten_thousand() -> None:
    exact, answers = right("splitting", population(10_000, 1000, 0))
    assert exact
    assert answers <= 110


def test_every_small_world() -> None:
    for name, metric, b in (
        ("packed", "sp", 1),
        ("packed", "abs_sp", 0.1),
        ("splitting", "sp", 0.1),
        ("splitting", "abs_sp", 1),
    ):
        for n in range(2, 5):
            for a in everybody(n):
                assert right(name, a, b=b, metric=metric, seed=n)[0]


@pytest.mark.slow(seconds=1)
@pytest.mark.parametrize("name", PLAYS)
@pytest.mark.parametrize("metric", ["sp", "abs_sp"])
@pytest.mark.parametrize("base", [np.zeros, np.ones, lambda n: np.full(n, 0.5), lambda n: np.linspace(0, 1, n)])
def test_every_small_world_by_odd_models(name: str, metric: str, base: Callable[[int], NDArray[np.float64]]) -> None:
    for n in range(2, 8):
        for a in everybody(n):
            assert right(name, a, base=base(n), b=0.1, metric=metric, seed=n)[0]


def test_groups_of_any_size() -> None:
    for name, n0, b, metric in (
        ("packed", 1, 0.01, "sp"),
        ("packed", 30, 1, "abs_sp"),
        ("packed", 59, 0.1, "sp"),
        ("splitting", 1, 1, "abs_sp"),
        ("splitting", 30, 0.1, "abs_sp"),
        ("splitting", 59, 0.01, "sp"),
    ):
        assert right(name, population(60, n0, 4), b=b, metric=metric)[0]
        assert right(name, population(60, n0, 5), b=b, metric=metric, n0=n0)[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", PLAYS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_rows_keep_to_their_bounds_and_answers_to_theirs(name: str, data: st.DataObject) -> None:
    n = data.draw(st.integers(8, 40), label="n")
    scores = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 5e-324, 0.1, 0.5, 1 - 2**-53, 1.0]))
    base = data.draw(st.lists(scores, min_size=n, max_size=n).map(np.array), label="h0")
    b = data.draw(st.sampled_from([1, 0.9, 0.5, 0.1, 1 / 3, 0.01, 1e-4]), label="b")
    a = population(n, data.draw(st.integers(1, n - 1), label="n0"), data.draw(st.integers(0, 99), label="seed"))
    exact, answers = right(name, a, base=base, b=b)  # Service checks the rows
    assert exact
    # 15 bits an answer are left at the least b; the first one tells N0 too, and may be read in two ways. Among eight
    # people, of whom one stands alone, two answers more may be (found by trying all N0 with a hundred seeds each).
    assert answers <= 3 + math.ceil(n / 15) + 2 * (n == 8)


@pytest.mark.check
@pytest.mark.parametrize(("name", "times"), [("packed", 4), ("splitting", 2)])
def test_one_bit_too_many_is_too_many(name: str, times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin that trusts answers for a bit or two more than they have gets people wrong.

    Blocks of binary digits fill rows to a whole bit, so that the first bit too many may still fit.
    """

    def wrong() -> int:
        return sum(not right(name, population(300, 40, seed), seed=seed)[0] for seed in range(20))

    assert wrong() == 0
    bound = how.error
    monkeypatch.setattr(sums, "error", lambda *facts: bound(*facts) / times)
    assert wrong() > 0


@settings(max_examples=60, deadline=None)
@given(
    n0=st.integers(1, 500),
    n1=st.integers(1, 500),
    bits=st.integers(1, 45),
    seed=st.integers(0, 2**32),
    precision=st.sampled_from(["float64", "float32", 0, 2, 4, 9]),
)
def test_answers_err_no_more_than_the_bound(n0: int, n1: int, bits: int, seed: int, precision: Precision) -> None:
    rng = np.random.default_rng(seed)
    whole = rng.integers(0, 2**bits, n0 + n1, endpoint=True)
    a = np.repeat(np.array([0, 1], np.uint8), [n0, n1])
    answer = Service(a, np.zeros(0), precision=precision).gaps(np.ldexp(whole.astype(float), -bits)[None])[0]
    sum0, sum1 = (int(whole[a == group].sum()) for group in (0, 1))
    # Exactly: |answer - (sum1 / n1 - sum0 / n0) / 2^bits| <= bound.
    top, bottom = float(answer).as_integer_ratio()
    off = abs(top * n0 * n1 * 2**bits - (sum1 * n0 - sum0 * n1) * bottom)
    rates = [np.array([total / size / 2**bits]) for total, size in ((sum1, n1), (sum0, n0))]
    bound = float(how.error(precision, *rates, np.abs(rates[0] - rates[1]))[0])
    up, down = bound.as_integer_ratio()
    assert off * down <= up * bottom * n0 * n1 * 2**bits
    assert precision in how.possible(how.PRECISIONS, float(answer))


@dataclass
class Noise:
    """Answer anything."""

    seed: int
    scale: float

    def size(self, row: NDArray[np.float64]) -> float:
        return float(self.gaps(row[None])[0])

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        rng = np.random.default_rng([self.seed, int(rows.sum() * 1e6) % 2**31])
        noise = self.scale * rng.uniform(-1, 1, len(rows)) * rng.integers(0, 2)
        return np.where(rng.random(len(rows)) < 0.2, np.nan, noise)


@pytest.mark.parametrize("name", PLAYS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data(), n=st.integers(1, 15), seed=st.integers(0, 10**6))
def test_no_answer_breaks_them(name: str, data: st.DataObject, n: int, seed: int) -> None:
    base = data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n).map(np.array), label="h0")
    terms = PublicTerms(
        metric=data.draw(st.sampled_from(["sp", "abs_sp", "eodds_max"]), label="metric"),
        precision=data.draw(st.sampled_from([None, "float64", "float32", 0, 4, 15]), label="precision"),
        n0=data.draw(st.sampled_from([None, 1]), label="n0"),
    )
    auditor = Noise(seed, data.draw(st.sampled_from([0, 1e-9, 0.1, 1, 1e6, 1e308]), label="scale"))
    b = data.draw(st.sampled_from([1, 0.1, 1e-3, 0]), label="b")
    queries = data.draw(st.integers(1, 20), label="m")
    reveal = PLAYS[name](hand_for(auditor, base, terms, seed, perturbation=b, queries=queries))
    assert reveal.guess.shape == (n,)
    assert set(reveal.guess.tolist()) <= {0, 1}


@pytest.mark.parametrize("name", PLAYS)
def test_queries_are_the_most_there_may_be(name: str) -> None:
    found = []
    for m in (1, 4, 9):
        a, base = population(1000, 104, 0), logistic(1000, 0)
        service = Service(a, base)
        reveal = PLAYS[name](hand_for(service, base, PublicTerms(), 0, queries=m))
        assert service.asked == m
        found.append(50 * float((reveal.guess[a == 1] == 1).mean() + (reveal.guess[a == 0] == 0).mean()))
    assert found == sorted(found)
    assert 50 < found[0] < found[-1] < 100


def test_h0_is_not_waited_for_where_rows_are_free() -> None:
    a = population(100, 10, 0)

    def base() -> NDArray[np.float64]:
        raise AssertionError

    for play in PLAYS.values():
        hand = hand_for(Service(a, logistic(100, 0)), logistic(100, 0), PublicTerms(), 0)
        assert (play(replace(hand, base=base)).guess == a).all()


def test_subset_codes_tell_subsets_apart() -> None:
    for g, k in ((4, 2), (12, 3), (10, 5)):
        code = subset_code(g, k)
        assert code is not None
        weights, subsets = code
        assert len(subsets) == math.comb(g, k)
        assert all(weights[list(subset)].sum() == total for total, subset in subsets.items())
        assert subset_code(100, 50) is None


@given(g=st.integers(1, 300), data=st.data())
def test_count_ranges_leave_little_out(g: int, data: st.DataObject) -> None:
    k, s = data.draw(st.integers(0, g)), data.draw(st.integers(0, g))
    p = count_law(g, k, s)
    first = max(0, k - (g - s))
    exact = [math.comb(s, v) * math.comb(g - s, k - v) / math.comb(g, k) for v in range(first, first + p.size)]
    assert p == pytest.approx(exact, rel=1e-6)
    low, high = count_range(g, k, s)
    assert sum(exact[: low - first]) <= 2 * TAIL
    assert sum(exact[high - first + 1 :]) <= 2 * TAIL


def test_the_information_bound() -> None:
    assert answers_needed(100, 10, 50) == 1
    assert answers_needed(1000, 104, 50) == 10
    assert answers_needed(100, 0, 50) == 0
