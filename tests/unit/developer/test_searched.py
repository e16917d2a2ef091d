"""A search for questions finds what is wrong with a mechanism, and leaves `best` where nothing is."""

import numpy as np
import pytest

from developer.reveal.strategies import best, searched
from developer.reveal.strategies.strategy import PublicTerms, StrategyInputs
from tests.twins.answers import EPSILON, repeats_for_nothing, rounds_by_who_is_in

N, N0 = 40, 6


def balanced(simulate: searched.Simulate, terms: PublicTerms, *, seed: int, search: bool, queries: int) -> float:
    rng = np.random.default_rng(seed)
    z = rng.permutation(N) < N0
    hand = StrategyInputs(
        people=N,
        base=lambda: np.full(N, 0.5),
        prior=lambda: np.arange(N, dtype=np.uint8) % 2,
        auditor=searched.SimulatedAuditor(simulate, z, rng),
        rng=np.random.default_rng([seed, 1]),
        queries=queries,
        perturbation=1.0,
        terms=terms,
        llr=lambda: np.zeros(N),
    )
    guess = (searched.play(hand, simulate) if search else best.play(hand)).guess == 0
    return 50 * float(guess[z].mean() + (~guess[~z]).mean())


@pytest.mark.slow(seconds=8)
@pytest.mark.parametrize(
    ("simulate", "terms", "queries"),
    [
        (rounds_by_who_is_in, PublicTerms(mechanism="round", precision=2, n0=N0), 30),
        (repeats_for_nothing, PublicTerms(mechanism="laplace", epsilon=EPSILON / 4, n0=N0), 120),
    ],
)
def test_what_best_does_not_know_is_found(simulate: searched.Simulate, terms: PublicTerms, queries: int) -> None:
    """At 2 fixed seeds; by how much at 200, says benchmarks/bayes_limit.py."""
    gains = [
        balanced(simulate, terms, seed=seed, search=True, queries=queries)
        - balanced(simulate, terms, seed=seed, search=False, queries=queries)
        for seed in range(2)
    ]
    assert np.mean(gains) > 5


@pytest.mark.check
def test_best_is_played_where_nothing_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "_FINAL", 4)
    monkeypatch.setattr(searched, "_GAMES", 2)
    terms = PublicTerms(mechanism="laplace", epsilon=100.0, n0=N0)
    simulate = searched.by_law(terms)
    assert simulate is not None
    found = [balanced(simulate, terms, seed=0, search=search, queries=20) for search in (True, False)]
    assert found[0] == found[1]
    # No law of one gap's error says all of these.
    assert searched.by_law(PublicTerms(mechanism="cells", epsilon=1.0, n0=N0)) is None
    assert searched.by_law(PublicTerms()) is None
