import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from developer.reveal.decode import DECODERS, DecoderInputs
from developer.reveal.strategies import STRATEGIES, PublicTerms, Reveal, StrategyInputs
from developer.reveal.strategies.compressed import decide
from developer.reveal.strategies.sizes import group_sizes
from fairwall.laws.noise.distributions import Laplace

COMPRESSED = ["sensing", "random-binary", "gaussian"]


class ExactAuditor:
    """Answer from the definition of the gap, and keep count."""

    def give_up(self, queries: int) -> None:
        pass

    def __init__(self, a: NDArray[np.uint8], signed: bool = True, log: list[str] | None = None) -> None:
        self.a, self.signed = a, signed
        self.log = [] if log is None else log
        self.metric_queries = self.size_queries = 0

    def _gap(self, row: NDArray[np.float64]) -> float:
        assert row.shape == self.a.shape
        assert row.min() >= 0
        assert row.max() <= 1
        gap = row[self.a == 1].mean() - row[self.a == 0].mean()
        return float(gap if self.signed else abs(gap))

    def size(self, row: NDArray[np.float64]) -> float:
        self.log.append("size")
        self.size_queries += 1
        return self._gap(row)

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        self.log.append("gaps")
        self.metric_queries += len(rows)
        return np.array([self._gap(row) for row in rows])


class LinearAuditor(ExactAuditor):
    """The same by one matrix product, for many people."""

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        return rows @ np.where(self.a == 1, 1 / (self.a == 1).sum(), -1 / (self.a == 0).sum())


def skewed(n: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).beta(0.5, 2, n)


def hand(auditor: object, scores: NDArray[np.float64], queries: int, **changes: object) -> StrategyInputs:
    n = scores.size
    whole = {
        "people": n,
        "base": lambda: scores,
        "prior": lambda: np.ones(n, np.uint8),
        "auditor": auditor,
        "rng": np.random.default_rng(7),
        "queries": queries,
    }
    return StrategyInputs(**(whole | changes))


def population(n: int, n0: int, seed: int) -> NDArray[np.uint8]:
    a = np.ones(n, np.uint8)
    a[np.random.default_rng(seed).permutation(n)[:n0]] = 0
    return a


def everybody(n: int) -> Iterator[NDArray[np.uint8]]:
    """All attributes of n people with both groups there."""
    for bits in itertools.product((0, 1), repeat=n):
        if 0 < sum(bits) < n:
            yield np.array(bits, np.uint8)


def leakage(guess: NDArray[np.uint8], a: NDArray[np.uint8]) -> float:
    """Balanced accuracy in per cent; 50 is chance."""
    return 50 * float((guess[a == 1] == 1).mean() + (guess[a == 0] == 0).mean())


def mean_leakage(name: str, n: int, n0: int, m: int, seeds: int, **changes: object) -> float:
    found = []
    for seed in range(seeds):
        a = population(n, n0, seed)
        reveal = STRATEGIES[name].play(
            hand(LinearAuditor(a), skewed(n, seed), m, rng=np.random.default_rng(seed), **changes)
        )
        found.append(leakage(reveal.guess, a))
    return float(np.mean(found))


@pytest.mark.parametrize("name", ["single", "pair"])
def test_one_target_is_revealed_whatever_the_attributes(name: str) -> None:
    for n, a in ((size, a) for size in range(2, 6) for a in everybody(size)):
        for target in range(n):
            reveal = STRATEGIES[name].play(
                hand(ExactAuditor(a), skewed(n, n), 1, target=target, prior=lambda a=a: 1 - a)  # wrong throughout
            )
            assert reveal.targeted.tolist() == [person == target for person in range(n)]
            assert (reveal.guess == np.where(reveal.targeted, a, 1 - a)).all()


@pytest.mark.parametrize("left_out", [0, 1])
@pytest.mark.parametrize(
    "scores",
    [skewed, np.zeros, np.ones, lambda n: np.eye(n)[0]],
    ids=["skewed", "rejects all", "accepts all", "accepts one"],
)
def test_linear_reveals_everyone(left_out: int, scores: Callable[[int], NDArray[np.float64]]) -> None:
    for n, a in ((size, a) for size in range(3, 6) for a in everybody(size)):
        reveal = STRATEGIES["linear"].play(hand(ExactAuditor(a), scores(n), n - left_out))
        assert (reveal.guess == a).all()
        assert reveal.targeted.all()


@pytest.mark.parametrize(("n0", "m"), [(104, 1000), (500, 999)])
def test_linear_reveals_a_thousand(n0: int, m: int) -> None:
    assert mean_leakage("linear", 1000, n0, m, seeds=1) == 100


def test_linear_takes_n_or_one_less() -> None:
    for m in (1, 98, 101):
        with pytest.raises(ValueError, match="queries"):
            STRATEGIES["linear"].play(hand(ExactAuditor(population(100, 10, 0)), skewed(100), m))
        assert m not in STRATEGIES["linear"].counts(100)


def test_absolute_partitions_everyone() -> None:
    for n, a in ((size, a) for size in range(2, 7) for a in everybody(size)):
        reveal = STRATEGIES["absolute"].play(hand(ExactAuditor(a, signed=False), skewed(n), n))
        smaller_is_disadvantaged = a.sum() > n / 2
        assert reveal.polarity_known == (2 * a.sum() != n)
        assert (reveal.guess == a).all() or (not smaller_is_disadvantaged and (reveal.guess == 1 - a).all())


@pytest.mark.parametrize("n0", [1, 500])
def test_absolute_partitions_a_thousand(n0: int) -> None:
    a = population(1000, n0, 3)
    guess = STRATEGIES["absolute"].play(hand(ExactAuditor(a, signed=False), skewed(1000), 1000)).guess
    assert (guess == a).all() or (guess == 1 - a).all()


@pytest.mark.parametrize(("m", "least", "most"), [(25, 60, 75), (50, 100, 100)])
def test_sensing_reveals_a_hundred_from_half_as_many(m: int, least: float, most: float) -> None:
    assert least <= mean_leakage("sensing", 100, 10, m, seeds=10) <= most


def test_sensing_reveals_a_thousand() -> None:
    assert mean_leakage("sensing", 1000, 104, 400, seeds=1) == 100


@pytest.mark.parametrize("name", ["random-binary", "gaussian"])
def test_random_rows_reveal_a_hundred(name: str) -> None:
    assert mean_leakage(name, 100, 10, 25, seeds=4) < 95
    assert mean_leakage(name, 100, 10, 45, seeds=4) == 100


@pytest.mark.parametrize("perturbation", [1e-4, 1e-2])
def test_sensing_works_at_any_distance_from_the_base_model(perturbation: float) -> None:
    assert mean_leakage("sensing", 100, 10, 50, seeds=3, perturbation=perturbation) == 100


def test_least_squares_needs_as_many_rows_as_people() -> None:
    assert mean_leakage("sensing", 100, 10, 50, seeds=2, decode=DECODERS["lstsq"]) < 90
    assert mean_leakage("sensing", 100, 10, 100, seeds=2, decode=DECODERS["lstsq"]) == 100


def test_the_reconstruction_is_s() -> None:
    a = population(100, 10, 0)
    reveal = STRATEGIES["sensing"].play(hand(ExactAuditor(a), skewed(100), 60))
    assert reveal.reconstruction == pytest.approx(np.where(a == 0, 1 / 10 + 1 / 90, 0), abs=1e-5)


@pytest.mark.parametrize("name", COMPRESSED)
def test_the_size_query_does_not_wait_for_the_base_model(name: str) -> None:
    log: list[str] = []

    def base() -> NDArray[np.float64]:
        log.append("base")
        return skewed(20)

    STRATEGIES[name].play(hand(ExactAuditor(population(20, 3, 0), log=log), skewed(20), 5, base=base))
    assert [entry for entry in log if entry != "base"] == ["size", "gaps"]
    assert log[0] == "size"


PLAYABLE = [name for name, s in STRATEGIES.items() if s.metrics & {"sp", "abs_sp"} and s.mechanism is None]


def test_a_strategy_asks_what_it_declares() -> None:
    for name in PLAYABLE:
        n, strategy = 20, STRATEGIES[name]
        auditor = ExactAuditor(population(n, 3, 0), "sp" in strategy.metrics)
        reveal = strategy.play(hand(auditor, skewed(n), n))
        assert auditor.metric_queries in strategy.counts(n)
        # The sizes may be found without asking for them.
        assert auditor.size_queries in {strategy.size_queries, 0 if strategy.adaptive else strategy.size_queries}
        assert (reveal.reconstruction is not None) == ("l1" in strategy.decoders) or strategy.adaptive


def test_the_declared_counts() -> None:
    counts = {name: strategy.counts(100) for name, strategy in STRATEGIES.items()}
    any_number = counts["sensing"]
    assert 0 not in any_number
    assert all(m in any_number for m in (1, 99, 10**6))
    assert counts == {
        "single": range(1, 2),
        "pair": range(2, 3),
        "linear": range(99, 101),
        "sensing": any_number,
        "random-binary": any_number,
        "gaussian": any_number,
        "absolute": range(100, 101),
        "meet": range(1, 2),
        "targeted": any_number,
        **dict.fromkeys((name for name, strategy in STRATEGIES.items() if strategy.adaptive), any_number),
    }


def test_the_table_names_decoders_there_are() -> None:
    assert all(decoder in DECODERS for s in STRATEGIES.values() for decoder in s.decoders)


def test_the_same_seed_gives_the_same_reveal() -> None:
    def once() -> Reveal:
        auditor = ExactAuditor(population(100, 10, 0))
        return STRATEGIES["sensing"].play(hand(auditor, skewed(100), 25, rng=np.random.default_rng(1)))

    first, second = once(), once()
    assert (first.reconstruction == second.reconstruction).all()


def test_sizes_come_back_exactly() -> None:
    for n, own in ((size, own) for size in (2, 3, 10, 1000) for own in range(1, size)):
        assert group_sizes(1 / own, n) == (n - own, own)
        assert group_sizes(-1 / own, n) == (own, n - own)


@given(gap=st.floats(allow_nan=False, allow_infinity=False), n=st.integers(2, 50))
def test_sizes_from_any_answer_are_sizes(gap: float, n: int) -> None:
    n0, n1 = group_sizes(gap, n)
    assert n0 + n1 == n
    assert min(n0, n1) >= 1


class NoisyAuditor:
    """Answer anything."""

    def give_up(self, queries: int) -> None:
        pass

    def __init__(self, seed: int, size: float) -> None:
        self.rng, self.scale = np.random.default_rng(seed), size

    def size(self, row: NDArray[np.float64]) -> float:
        return float(self.gaps(row[None])[0])

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        # Over many orders of magnitude, with zeros.
        return self.scale * self.rng.uniform(-1, 1, len(rows)) ** self.rng.integers(1, 9) * self.rng.integers(0, 2)


@pytest.mark.parametrize("decoder", ["ep", "score", pytest.param("mcmc", marks=pytest.mark.check)])
def test_no_probability_is_beyond_what_epsilon_allows(decoder: str) -> None:
    """Of answers whose noise is far less than epsilon asks for, as a decoder may think that approximates."""
    n, n0, epsilon = 40, 9, 1.0
    a = population(n, n0, 3)
    rows = np.random.default_rng(4).integers(0, 2, (30, n)).astype(np.float64)
    terms = PublicTerms(mechanism="counts", epsilon=epsilon, n0=n0)
    own = hand(LinearAuditor(a), skewed(n), 30, terms=terms, decode=DECODERS[decoder])
    evidence = DecoderInputs(rows, LinearAuditor(a).gaps(rows), n0, n - n0, Laplace(0.01), rng=own.rng)
    reveal = decide(own, evidence)
    assert reveal.confidence is not None
    odds = np.log(reveal.confidence / (1 - reveal.confidence))
    assert np.abs(odds).max() == pytest.approx(2 * epsilon), "a swap: N0 is known"
    assert (odds[reveal.guess == 0] > 0).all()
    # Without a law of the noise nothing is probable.
    assert decide(replace(own, decode=DECODERS["l1"]), evidence).confidence is None


@pytest.mark.few(3)
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    data=st.data(),
    n=st.integers(2, 15),
    size=st.floats(0, 1e6),
    seed=st.integers(0, 10**6),
)
@pytest.mark.parametrize("name", STRATEGIES)
def test_no_answer_breaks_a_strategy(name: str, data: st.DataObject, n: int, size: float, seed: int) -> None:
    strategy = STRATEGIES[name]
    base = data.draw(st.lists(st.floats(0, 1), min_size=n, max_size=n).map(np.array), label="h0")
    decoder = data.draw(st.sampled_from([None, *strategy.decoders]), label="decoder")
    decode = DECODERS[decoder] if decoder else None
    m = n if name == "linear" else data.draw(st.integers(1, 2 * n), label="m")
    labels = (np.arange(n) % 2).astype(np.uint8)
    near = 1.0 if strategy.free else data.draw(st.sampled_from([0.1, 1.0]), label="perturbation")
    auditor = NoisyAuditor(seed, size)
    reveal = strategy.play(hand(auditor, base, m, decode=decode, labels=labels, perturbation=near))
    assert reveal.guess.shape == reveal.targeted.shape == (n,)
    assert set(reveal.guess.tolist()) <= {0, 1}
    assert reveal.reconstruction is None or np.isfinite(reveal.reconstruction).all()
    assert reveal.confidence is None or ((reveal.confidence >= 0) & (reveal.confidence <= 1)).all()
