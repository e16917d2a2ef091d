"""Whoever knows N0 asks no size query: every strategy, every mechanism, every metric, on compliance's own answers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.answers.audits import game_case, values_of
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.records.people import Records
from developer.reveal import play as developer
from developer.reveal.strategies import STRATEGIES, Reveal, Strategy, StrategyInputs
from developer.reveal.strategies.sizes import ask_sizes
from developer.reveal.strategies.strategy import everyone
from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.laws.metrics.metric import METRICS, strata_of
from fairwall.rpc.arrays import from_message
from fairwall.wire.metrics import number_of
from fairwall.wire.queries import kind_of

N = 22
EPSILON, DELTA, BATCH_DELTA = 30.0, 1e-5, 1e-6
LABELS = (np.arange(N) % 2).astype(np.uint8)
PROTECTED = np.where(np.arange(N) % 7 < 2, 0, 1).astype(np.uint8)
SCORES = np.linspace(0.05, 0.95, N)[np.random.default_rng(3).permutation(N)]

Asked = list[tuple[str, int, float]]
"""Each request's kind, how many queries it had, and what it might spend."""


def plays(strategy: Strategy) -> Iterator[tuple[str, str, float, float]]:
    """Give the mechanism, metric, epsilon and perturbation of every game that a strategy can be played in."""
    for name, mechanism in MECHANISMS.items():
        if strategy.mechanism not in (None, name):
            continue
        for metric in METRICS:
            if metric not in strategy.metrics or mechanism.refuses(metric, EPSILON, DELTA) is not None:
                continue
            if name == "pass-fail" and metric not in STRATEGIES["verdicts"].metrics:
                continue
            if name == "recommended" and metric not in ("sp", "abs_sp"):
                continue  # what it recommends takes it a while, metric by metric
            exact = strategy.exact or metric == "ppv" or name in ("exact", "round", "pass-fail")
            free = strategy.free or metric in ("ppv", "eodds_max") or name == "pass-fail"
            for epsilon in (math.inf,) if exact else (EPSILON,):
                for perturbation in (1.0, 0.1) if metric in ("abs_sp", "eodds_sum") and not free else (1.0,):
                    yield name, metric, epsilon, perturbation


def play(
    strategy: Strategy,
    mechanism: str,
    metric: str,
    epsilon: float,
    perturbation: float,
    *,
    knows: bool = True,
    protected: NDArray[np.uint8] = PROTECTED,
) -> tuple[game.SubmitRevealRequest, Asked]:
    """Play a deal to its end; what was submitted, and what was asked."""
    records = Records(LABELS, protected, (metric,))
    case = game_case("deal", records, MECHANISMS[mechanism], Budget(epsilon, DELTA), BATCH_DELTA, 1000, b"seed" * 8)
    strata = [int(inside.sum()) for inside in strata_of(metric, LABELS)]
    sizes = [int((protected[inside] == 0).sum()) for inside in strata_of(metric, LABELS)]
    counts = strategy.counts(N)
    deal = game.DeveloperDeal(
        deal_id="deal",
        seed=b"seed",
        metric=number_of(metric),
        epsilon=epsilon,
        batch_delta=BATCH_DELTA,
        mechanism=mechanism,
        strategy=strategy.name,
        queries=(
            game.QueryCount(people_less=0)
            if N in counts and len(counts) <= 2
            else game.QueryCount(at_most=12)
            if strategy.adaptive
            else game.QueryCount(fixed=min(counts[-1], 12))
        ),
        perturbation=perturbation,
        disadvantaged=sizes if knows else [],
    )
    asked: Asked = []

    def answer(request: str, predictions: NDArray[np.float64], share: float) -> NDArray[np.float64]:
        asked.append((kind_of(request), len(predictions), share))
        return values_of(case.answer("developer", request, request.encode(), metric, predictions, share))

    purse = developer._purse(deal, strata, 0)
    test_set = developer._TestSet(np.zeros((N, 1)), LABELS, lambda: SCORES, answer, purse)
    return developer._reveal(deal, test_set, None), asked


# The best strategy plays all others, which are played by themselves; the search plays it, after minutes of its own.
@pytest.mark.check
@pytest.mark.parametrize(
    "name",
    [
        *("pair", "sensing", "targeted"),
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in STRATEGIES
            if name not in ("pair", "sensing", "targeted")
        ),
    ],
)
def test_no_size_is_asked_for_and_all_of_epsilon_goes_to_metric_queries(name: str) -> None:
    for mechanism, metric, epsilon, perturbation in plays(STRATEGIES[name]):
        submitted, asked = play(STRATEGIES[name], mechanism, metric, epsilon, perturbation)
        about = (mechanism, metric, epsilon, perturbation, asked)
        kinds = {kind for kind, _, _ in asked}
        # Near the base model the sum of two strata's gaps says nothing without the other stratum's own.
        assert kinds <= {"metric"} | ({"reference"} if metric == "eodds_sum" and perturbation < 1 else set()), about
        assert submitted.size_queries == sum(queries for kind, queries, _ in asked if kind == "reference"), about
        assert submitted.queries == sum(queries for kind, queries, _ in asked if kind == "metric"), about
        shares = [share for _, _, share in asked]
        if mechanism == "randomized-response":  # what is bought first answers all
            shares = shares[:1]
        if not math.isinf(epsilon):
            assert math.fsum(shares) == pytest.approx(epsilon, rel=1e-12), about


def test_who_does_not_know_it_asks() -> None:
    """Else the test above says nothing."""
    for name in [name for name, strategy in STRATEGIES.items() if strategy.size_queries]:
        found = (play(STRATEGIES[name], *game, knows=False)[1] for game in plays(STRATEGIES[name]))
        assert any({"size", "sized"} & {kind for kind, _, _ in asked} for asked in found)


MORE = (1 - PROTECTED).astype(np.uint8)
"""People of whom more than half are disadvantaged."""


@pytest.mark.parametrize("name", ["absolute", "splitting"])
def test_a_partition_is_named_by_it_even_where_the_disadvantaged_are_more(name: str) -> None:
    for knows in (False, True):
        submitted, _ = play(STRATEGIES[name], "exact", "abs_sp", math.inf, 1.0, knows=knows, protected=MORE)
        assert submitted.polarity_known
        assert from_message(submitted.guess).tolist() == (MORE if knows else 1 - MORE).tolist()


@pytest.mark.parametrize(("name", "mechanism"), [("absolute", "laplace"), ("best", "counts")])
def test_so_it_is_under_noise(name: str, mechanism: str) -> None:
    submitted, _ = play(STRATEGIES[name], mechanism, "abs_sp", 1e6, 1.0, protected=MORE)
    assert submitted.polarity_known
    assert (from_message(submitted.guess) == MORE).mean() > 0.9


def test_a_strategy_that_asks_all_the_same_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def insistent(hand: StrategyInputs) -> Reveal:
        ask_sizes(hand.auditor, hand.people)
        return everyone(hand.prior() == 1)

    twin = Strategy("insistent", insistent, counts=lambda _: range(1, 2), size_queries=1)
    monkeypatch.setitem(STRATEGIES, "insistent", twin)
    assert play(twin, "laplace", "sp", EPSILON, 1.0, knows=False)[1] == [("size", 1, EPSILON / 2)]
    with pytest.raises(AssertionError, match="asks for no size"):
        play(twin, "laplace", "sp", EPSILON, 1.0)
