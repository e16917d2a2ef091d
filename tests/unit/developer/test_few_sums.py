"""Answers from a few noisy sums are read as these sums, and attacks on them reveal what is told beforehand."""

import math
from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from developer.reveal.decode import ep, few_sums
from developer.reveal.strategies import best
from developer.reveal.strategies.strategy import PublicTerms, StrategyInputs
from fairwall.laws.metrics.group_size_range import Shares
from fairwall.laws.privacy.exposure import revealed

N, N0 = 100, 10


@dataclass
class Auditor:
    """Answers with a mechanism, about people of whom a tenth are disadvantaged; nobody asks for sizes."""

    mechanism: str
    epsilon: float
    seed: int
    given_up: int = 0
    z: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.z = np.random.default_rng((self.seed, 1)).permutation(N) < N0

    def give_up(self, queries: int) -> None:
        self.given_up += queries

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        records = Records(np.zeros(N, np.uint8), (~self.z).astype(np.uint8), ("sp",))
        noise = Seeded(np.random.default_rng(self.seed))
        question = BatchQuestion("sp", rows, records)
        return MECHANISMS[self.mechanism].release(question, NO_FACTS, self.epsilon, 0.0, noise).values

    def size(self, row: NDArray[np.float64]) -> float:  # noqa: ARG002
        raise AssertionError("sizes tell nobody from anybody")

    def sized_gaps(self, row: NDArray[np.float64], rows: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:  # noqa: ARG002
        raise AssertionError("sizes tell nobody from anybody")


def played(mechanism: str, epsilon: float, seed: int, queries: int = 40) -> float:
    """Balanced accuracy of the strategy `best` by answers alone."""
    auditor, rng = Auditor(mechanism, epsilon, seed), np.random.default_rng((seed, 2))
    hand = StrategyInputs(
        people=N,
        base=lambda: np.full(N, 0.5),
        prior=lambda: np.ones(N, np.uint8),
        auditor=auditor,
        rng=rng,
        queries=queries,
        perturbation=1.0,
        decode=ep.decode,
        terms=PublicTerms(mechanism=mechanism, epsilon=epsilon),
        llr=lambda: np.zeros(N),
    )
    reveal = best.play(hand)
    assert reveal.from_answers is not None
    told = reveal.from_answers == 0
    return float(told[auditor.z].mean() + (~told[~auditor.z]).mean()) / 2


def blocks(count: int, seed: int) -> NDArray[np.float64]:
    block = np.random.default_rng(seed).permutation(np.arange(N) * count // N)
    return np.equal.outer(np.arange(count), block).astype(np.float64)


@pytest.mark.parametrize("n0", [N0, None])
def test_what_was_released_is_read(n0: int | None) -> None:
    epsilon = 50.0
    for seed in range(2):
        auditor = Auditor("cells", epsilon, seed)
        rows = blocks(10, seed)
        evidence = few_sums.behind(rows, auditor.gaps(rows), epsilon, n0)
        c = 1 / evidence.n0 + 1 / evidence.n1
        exact = (evidence.rows - evidence.rows.mean(axis=1, keepdims=True)) @ auditor.z
        # But for a factor, and for N0 itself where it stands among the sums.
        assert np.corrcoef(-evidence.gaps / c, exact)[0, 1] > 0.99
        if n0 is not None:
            assert -evidence.gaps / c == pytest.approx(exact, abs=0.25)


def test_a_batch_with_nothing_in_it_is_read_as_nothing() -> None:
    rows = np.full((3, N), 0.5)
    evidence = few_sums.behind(rows, np.zeros(3), 1.0, N0)
    assert np.isfinite(evidence.gaps).all()


@pytest.mark.parametrize(
    ("mechanism", "epsilon", "queries"), [("cells", 1.0, 40), pytest.param("cube", 1.0, 40, marks=pytest.mark.check)]
)
def test_attacks_on_mechanisms_reveal_what_is_told_beforehand(mechanism: str, epsilon: float, queries: int) -> None:
    found = [played(mechanism, epsilon, seed, queries) for seed in range(20)]
    told = revealed(mechanism, "sp", N, 40, epsilon, shares=Shares(N0 / N, N0 / N))
    deviation = float(np.std(found)) / math.sqrt(len(found))
    # Never more; and not much less, or it would be an attack that nobody can play. False alarms: one in 10,000.
    assert told - 0.04 - 4 * deviation < np.mean(found) < told + 0.01 + 4 * deviation


def test_cells_are_all_asked_for_at_once() -> None:
    auditor = Auditor("cells", 1.0, 0)
    hand = StrategyInputs(
        N, lambda: np.full(N, 0.5), lambda: np.ones(N, np.uint8), auditor, np.random.default_rng(0), 40, 1.0,
        terms=PublicTerms(mechanism="cells", epsilon=1.0),
    )  # fmt: skip
    best.play(hand)
    # Ten cells of ten people; the size query is given up, too.
    assert auditor.given_up == 40 - 10 + 1
