"""Right about one person, from real mechanisms' answers.

Every statistical test has a fixed seed and a false-alarm rate of 1e-7 over the choice of that seed.
"""

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.stats
from numpy.typing import NDArray

from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import NO_FACTS, BatchQuestion
from compliance.noise.sampling import Seeded
from compliance.records.people import Records
from developer.reveal.strategies import targeted
from developer.reveal.strategies.strategy import PublicTerms, StrategyInputs

N, N0 = 100, 10
FALSE_ALARM = 1e-7


def nobody_else() -> NDArray[np.uint8]:
    return np.ones(N, np.uint8)


class Compliance:
    """Answers from one mechanism, all of epsilon at once."""

    def __init__(self, a: NDArray[np.uint8], terms: PublicTerms, rng: np.random.Generator) -> None:
        self.records, self.terms, self.noise = Records(np.zeros(a.size, np.uint8), a, ("sp",)), terms, Seeded(rng)

    def size(self, _row: NDArray[np.float64]) -> float:
        raise AssertionError("there is no size query")

    def gaps(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        mechanism, terms = MECHANISMS[self.terms.mechanism], self.terms
        question = BatchQuestion("sp", rows, self.records)
        return mechanism.release(question, NO_FACTS, terms.epsilon, terms.delta, self.noise).values


def right(terms: PublicTerms, trials: int, m: int = 1, seed: int = 8) -> int:
    """Count the trials in which a random target is told right."""
    rng, found = np.random.default_rng(seed), 0
    for _ in range(trials):
        a = np.where(rng.permutation(N) < N0, 0, 1).astype(np.uint8)
        target = int(rng.integers(N))
        hand = StrategyInputs(
            people=N,
            base=lambda: np.zeros(N),
            prior=nobody_else,
            auditor=Compliance(a, terms, rng),
            rng=rng,
            queries=m,
            target=target,
            terms=terms,
        )
        reveal = targeted.play(hand)
        assert np.flatnonzero(reveal.targeted).tolist() == [target]
        found += int(reveal.guess[target] == a[target])
    return found


@pytest.mark.parametrize("mechanism", ["round", "counts"])
def test_a_large_epsilon_hides_nobody(mechanism: str) -> None:
    assert (
        right(PublicTerms(mechanism=mechanism, epsilon=100.0, delta=1e-5 if "gaussian" in mechanism else 0.0), 60) == 60
    )


@pytest.mark.check
def test_one_answer_of_conceal_tells_a_target() -> None:
    """Measured over 12,000 trials: 95.2%."""
    trials = 400
    found = right(PublicTerms(mechanism="conceal", epsilon=100.0), trials)
    assert scipy.stats.binomtest(found, trials, 0.94).pvalue > FALSE_ALARM
    # The sign alone is right about 84%.
    assert scipy.stats.binomtest(found, trials, 0.84, "greater").pvalue < 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("n0", [None, N0])
def test_conceal_at_the_bar(n0: int | None) -> None:
    assert right(PublicTerms(mechanism="conceal", epsilon=100.0, n0=n0), 4000) >= 0.94 * 4000


@pytest.mark.check
def test_a_known_size_helps() -> None:
    trials = 400
    known, unknown = (right(PublicTerms(mechanism="conceal", epsilon=100.0, n0=n0), trials) for n0 in (N0, None))
    assert known > unknown


def test_the_guess_follows_the_answers() -> None:
    for mechanism, n0 in (("laplace", 3), ("cauchy", None), ("conceal", None), ("conceal", 3)):
        terms = PublicTerms(mechanism=mechanism, epsilon=300.0, n0=n0)
        odds = [targeted.ratio(np.full(3, gap), 10, terms) for gap in (-1 / 3, -0.1, 1 / 7)]
        assert odds[0] > 0 > odds[2]
        assert odds[0] > odds[1] > odds[2]


def test_no_answer_breaks_it() -> None:
    mechanisms = sorted(set(MECHANISMS) - {"conceal-laplace"})
    for mechanism, gap in itertools.product(mechanisms, (-1e9, 0.0, 1.0)):
        assert not np.isnan(
            targeted.ratio(np.full(2, gap), 10, PublicTerms(mechanism=mechanism, epsilon=2.0, delta=1e-5))
        )


def test_features_count() -> None:
    terms = PublicTerms(mechanism="conceal", epsilon=1.0)
    for own in (-50.0, 50.0):
        hand = StrategyInputs(
            people=10,
            base=lambda: np.zeros(10),
            prior=lambda: np.ones(10, np.uint8),
            auditor=Compliance(np.array([0, 1] * 5, np.uint8), terms, np.random.default_rng(0)),
            rng=np.random.default_rng(0),
            queries=1,
            target=3,
            terms=terms,
            llr=partial(np.full, 10, own),
        )
        assert targeted.play(hand).guess[3] == (own < 0)
