"""The eight models of private and fair training: what each is a function of, learns, reads and refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from developer.training import (
    MODELS,
    GroupAccess,
    GroupRates,
    Network,
    Regression,
    TrainingBudget,
    TrainingSet,
    network,
    train,
)
from fairwall.errors import UserError
from fairwall.learning.ensemble import constant
from fairwall.learning.training import Recipe, _Training

Table = tuple[TrainingSet, NDArray[np.uint8]]

NETWORK = Network(Recipe((8,), 100, 200, 1e-2), tellings=10)
FAIR = replace(NETWORK, strength=10.0)
BUDGET = TrainingBudget(5.0, 1e-5)
NOISE = 1.75
"""Enough for the budget, in the private networks; that the search finds such a one is a slow test."""
SMALL: dict[str, Network | Regression] = {
    "s-nn": NETWORK,
    "f-nn": FAIR,
    "dp-nn": replace(NETWORK, budget=BUDGET),
    "dpf-nn": replace(FAIR, budget=BUDGET),
    "lr": MODELS["lr"],
    "fair-lr": MODELS["fair-lr"],
    "priv-lr": Regression(budget=BUDGET),
    "pflr*": Regression(strength=30.0, budget=BUDGET),
}
FAIR_NAMES = [name for name, model in SMALL.items() if model.strength > 0]


def people(n: int = 1600, seed: int = 0) -> Table:
    """Rows whose labels their features tell most of, and whose group shifts both."""
    rng = np.random.default_rng(seed)
    group = (rng.random(n) < 0.6).astype(np.uint8)
    features = rng.normal(size=(n, 4))
    features[:, 0] += 1.5 * group
    labels = (features[:, 0] + features[:, 1] + 0.5 * rng.normal(size=n) > 1).astype(np.uint8)
    return TrainingSet(features, labels), group


@pytest.fixture(autouse=True)
def _noise_known(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch", reason="PyTorch is not installed")
    if "slow" not in request.keywords:
        monkeypatch.setattr(network, "noise_multiplier", lambda *_: NOISE)


def test_the_eight_are_fair_and_private_as_their_names_say() -> None:
    assert list(MODELS) == list(SMALL)
    assert [name for name, model in MODELS.items() if model.strength > 0] == FAIR_NAMES
    private = {name: model.budget for name, model in MODELS.items() if model.budget is not None}
    assert list(private) == ["dp-nn", "dpf-nn", "priv-lr", "pflr*"]
    assert {(budget.epsilon, budget.delta) for budget in private.values()} == {(0.1, 1e-5)}


@pytest.mark.parametrize(
    "name", ["s-nn", "dpf-nn", "pflr*", *(pytest.param(name, marks=pytest.mark.check) for name in ("dp-nn", "fair-lr"))]
)
def test_a_model_learns_is_a_function_of_its_seed_and_promises_what_it_may_spend(name: str) -> None:
    settings, (table, group) = SMALL[name], people()
    first, again = (train(table, settings, 3, group) for _ in range(2))
    scores = first.scores(table.features)
    assert np.array_equal(scores, again.scores(table.features))
    assert scores.shape == (1600,)
    assert 0 <= scores.min() <= scores.max() <= 1
    assert ((scores >= 0.5) == table.labels).mean() > max(table.labels.mean(), 1 - table.labels.mean()) + 0.05
    if settings.budget is None:
        assert first.spent is None
    else:
        assert first.spent is not None
        assert 0.5 * BUDGET.epsilon < first.spent.epsilon <= BUDGET.epsilon
        assert first.spent.delta == BUDGET.delta
        assert not np.array_equal(scores, train(table, settings, 4, group).scores(table.features))


@pytest.mark.parametrize(("fair", "plain"), [("dpf-nn", "dp-nn"), ("fair-lr", "lr"), ("pflr*", "priv-lr")])
def test_a_fair_model_has_less_than_half_of_the_gap(fair: str, plain: str) -> None:
    table, group = people()
    before, after = (
        np.mean([gap(train(table, SMALL[name], seed, group).scores(table.features), group) for seed in range(2)])
        for name in (plain, fair)
    )
    assert before > 0.3
    assert abs(after) < before / 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dp-nn", "dpf-nn"])
def test_a_private_network_spends_nearly_all_that_it_may(name: str) -> None:
    table, group = people()
    spent = train(table, SMALL[name], 0, group).spent
    assert spent is not None
    assert 0.98 * BUDGET.epsilon < spent.epsilon <= BUDGET.epsilon


def gap(scores: NDArray[np.float64], group: NDArray[np.uint8]) -> float:
    decisions = scores >= 0.5
    return float(decisions[group == 1].mean() - decisions[group == 0].mean())


@pytest.mark.parametrize("name", ["dp-nn", "priv-lr"])
def test_a_model_that_is_not_fair_does_not_read_groups(name: str) -> None:
    table, group = people()
    with_groups, without = train(table, SMALL[name], 0, group), train(table, SMALL[name], 0)
    assert np.array_equal(with_groups.scores(table.features), without.scores(table.features))


def test_a_network_asks_for_what_it_is_told_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its epsilon is that of the steps and tellings that there were."""
    steps, asked = 0, 0
    add_noise = _Training._add_noise

    def counted(self: _Training) -> None:
        nonlocal steps
        steps += 1
        add_noise(self)

    def rates(scores: NDArray[np.float64]) -> GroupRates:
        nonlocal asked
        asked += 1
        assert scores.shape == (1600,)
        return GroupRates((0.4, 0.6), (0.2, 0.5))

    monkeypatch.setattr(_Training, "_add_noise", counted)
    accounted: list[tuple[int, float]] = []
    monkeypatch.setattr(network, "epsilon_spent", lambda *args: accounted.append((args[3], args[4])) or 1.0)
    settings = Network(Recipe((8,), 50, 200, 1e-2), 2.0, tellings=9, budget=BUDGET)
    table, group = people()
    network.train(table, settings, 0, GroupAccess(group.astype(np.float64), rates, 0.02))
    # Every 6 of 50 steps: 9 tellings, the last for 2 steps.
    assert (steps, asked) == (50, 9)
    # The steps alone, to say what they cost by themselves, and with what was told.
    assert accounted == [(50, 0.0), (50, pytest.approx(0.02 * np.sqrt(9)))]


def test_a_row_in_between_the_groups_is_pulled_by_what_is_told_alone() -> None:
    """Who does not hold the attribute gives memberships in between; half a member of each equal group has no pull."""
    table, _ = people()
    told = GroupRates((0.5, 0.5), (0.1, 0.7))
    half = GroupAccess(np.full(1600, 0.5), lambda _: told)
    pulled, free = network.train(table, FAIR, 0, half), network.train(table, NETWORK, 0)
    assert np.array_equal(pulled.scores(table.features), free.scores(table.features))


def test_rates_are_exact_without_noise_and_within_it_otherwise() -> None:
    from developer.training import held

    _, group = people()
    scores = constant(1, [0]).scores(np.zeros((1600, 1)))[0] + 0.25 * group
    exact = held(group, 0.0, np.random.default_rng(0)).rates(scores)
    assert exact.gap == pytest.approx(0.25)
    assert exact.share == pytest.approx((1 - group.mean(), group.mean()))
    noisy = held(group, 20.0, np.random.default_rng(0))
    assert noisy.cost == 1 / 20
    gaps = [noisy.rates(scores).gap for _ in range(200)]
    # To first order the noise of rate a is 20 sqrt(1.25) sqrt(1 + (rate - 1/2)^2) / n_a; clipped at 0 in group 0.
    assert 0.005 < np.std(gaps) < 0.06


def test_what_cannot_be_trained_is_refused_in_one_line() -> None:
    table, _ = people(50)
    cases: list[tuple[str, Callable[[], object]]] = [
        ("the target is the same", lambda: TrainingSet(table.features, np.ones(50, np.uint8))),
        ("epsilon = 0: ", lambda: TrainingBudget(0.0)),
        ("epsilon = -1: ", lambda: TrainingBudget(-1.0)),
        ("epsilon = nan: ", lambda: TrainingBudget(float("nan"))),
        ("delta = 1: ", lambda: TrainingBudget(1.0, 1.0)),
        ("statistics = 0: ", lambda: TrainingBudget(1.0, 1e-5, 0.0)),
        ("delta = 0: a private network", lambda: replace(NETWORK, budget=TrainingBudget(1.0, 0.0))),
        *((says, case) for name in FAIR_NAMES for says, case in _without_groups(SMALL[name], table)),
    ]
    for says, case in cases:
        with pytest.raises(UserError) as refused:
            case()
        assert says in str(refused.value)
        assert "\n" not in str(refused.value)


def _without_groups(settings: Network | Regression, table: TrainingSet) -> list[tuple[str, Callable[[], object]]]:
    n = len(table.labels)
    return [
        ("the group of every row", lambda: train(table, settings, 0)),
        ("no row is in the advantaged group", lambda: train(table, settings, 0, np.zeros(n, np.uint8))),
        ("no row is in the disadvantaged group", lambda: train(table, settings, 0, np.ones(n, np.uint8))),
    ]
