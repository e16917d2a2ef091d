from __future__ import annotations

import math
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compliance.accountant import Budget, Law, Loss, Rule, composed_epsilon, gaussian, laplace, pure

DELTA = 1e-6


def charged(*epsilons: float) -> Counter[Loss]:
    return Counter(map(pure, epsilons))


def optimal_composition(epsilon: float, count: int, delta: float) -> float:
    """Kairouz, Oh, Viswanath 2015, Theorem 3.3: the exact trade-off of randomised response, on its own grid."""
    for step in range(count // 2, -1, -1):
        parts = (
            math.comb(count, lost)
            * (math.exp((count - lost) * epsilon) - math.exp((count - 2 * step + lost) * epsilon))
            for lost in range(step)
        )
        if math.fsum(parts) / (1 + math.exp(epsilon)) ** count <= delta:
            return (count - 2 * step) * epsilon
    raise AssertionError


# Basic composition ----------------------------------------------------------------------------------------------------


def test_charges_add_up() -> None:
    budget, losses = Budget(1.0), charged(0.25, 0.5)
    assert (budget.spent(losses), budget.remaining(losses)) == (0.75, 0.25)
    assert budget.affords(losses, pure(0.25))
    assert not budget.affords(losses, pure(0.26))


def test_deltas_add_up_beside_and_have_a_limit_of_their_own() -> None:
    budget, losses = Budget(10.0, 1e-5), Counter({pure(1.0, 4e-6): 2})
    assert budget.spent(losses) == 2.0
    assert budget.affords(losses, pure(1.0, 2e-6))
    assert not budget.affords(losses, pure(1.0, 3e-6))
    assert not Budget(10.0).affords(Counter(), pure(1.0, 1e-12))


@given(queries=st.integers(1, 10_000), epsilon=st.floats(1e-6, 1e6))
def test_a_split_never_overruns_by_rounding(queries: int, epsilon: float) -> None:
    budget, first, rest = Budget(epsilon), charged(epsilon / (queries + 1)), pure(epsilon * queries / (queries + 1))
    assert budget.affords(first, rest)
    assert budget.remaining(first + Counter([rest])) == pytest.approx(0, abs=1e-9 * epsilon)


def test_many_small_charges_use_the_budget_up_exactly_once() -> None:
    budget, losses = Budget(1.0), Counter({pure(1.0 / 1000): 1000})
    assert budget.spent(losses) == 1.0
    assert budget.remaining(losses) == 0
    # The tolerance is granted once: here it takes no more than a billionth of the limit in all.
    for _ in range(10):
        if budget.affords(losses, pure(2e-10)):
            losses[pure(2e-10)] += 1
    assert budget.spent(losses) <= 1 + 1e-9
    assert budget.remaining(losses) == 0


@given(st.lists(st.floats(1e-3, 1.0), max_size=50), st.floats(0.1, 10.0))
def test_spending_never_exceeds_the_limit(epsilons: list[float], limit: float) -> None:
    budget, losses = Budget(limit), Counter[Loss]()
    for epsilon in epsilons:
        if budget.affords(losses, pure(epsilon)):
            losses[pure(epsilon)] += 1
    assert budget.spent(losses) <= limit * (1 + 1e-9)


def test_no_limit() -> None:
    budget = Budget(math.inf)
    assert (budget.spent(charged(1e6)), budget.remaining(charged(1e6))) == (1e6, math.inf)
    losses = charged(math.inf, math.inf)
    assert (budget.spent(losses), budget.remaining(losses)) == (math.inf, math.inf)
    assert budget.affords(losses, pure(1.0))


def test_an_infinite_charge_needs_an_infinite_limit() -> None:
    assert not Budget(1e300).affords(Counter(), pure(math.inf))


def test_a_limit_of_zero_affords_nothing() -> None:
    assert not Budget(0.0).affords(Counter(), pure(1e-300))
    assert Budget(0.0).spent(Counter()) == 0


# What is out of range -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.0, -0.1, math.nan, -math.inf])
def test_charges_out_of_range_are_refused(epsilon: float) -> None:
    for law in (pure, laplace):
        with pytest.raises(ValueError, match="charge must be above 0"):
            law(epsilon)


@pytest.mark.parametrize("delta", [-1e-9, 1.0, math.nan])
def test_deltas_out_of_range_are_refused(delta: float) -> None:
    with pytest.raises(ValueError, match="delta"):
        pure(1.0, delta)
    with pytest.raises(ValueError, match="delta"):
        Budget(1.0, delta)
    with pytest.raises(ValueError, match="delta"):
        gaussian(1.0, delta)


@pytest.mark.parametrize("multiplier", [0.0, -1.0, math.inf, math.nan])
def test_multipliers_out_of_range_are_refused(multiplier: float) -> None:
    with pytest.raises(ValueError, match="multiplier"):
        gaussian(multiplier, DELTA)
    with pytest.raises(ValueError, match="multiplier"):
        Loss(1.0, DELTA, Law.GAUSSIAN, multiplier)


def test_only_gaussian_noise_has_a_multiplier() -> None:
    with pytest.raises(ValueError, match="multiplier"):
        Loss(1.0, multiplier=1.0)


@pytest.mark.parametrize("limit", [-1.0, math.nan])
def test_limits_out_of_range_are_refused(limit: float) -> None:
    with pytest.raises(ValueError, match="limit"):
        Budget(limit)


# Advanced composition and zCDP ----------------------------------------------------------------------------------------


def test_advanced_composition_is_the_theorems_formula() -> None:
    losses = Counter({pure(0.1): 100, pure(0.05): 100})
    squares = 100 * 0.1**2 + 100 * 0.05**2
    formula = squares / 2 + math.sqrt(2 * math.log(2 / DELTA) * squares)
    assert composed_epsilon(losses, DELTA, Rule.ADVANCED) == pytest.approx(formula)
    assert formula < 15


def test_advanced_composition_keeps_half_of_delta_for_the_charges() -> None:
    losses = Counter({pure(0.01, 1e-9): 500})
    squares = 500 * 0.01**2
    formula = squares / 2 + math.sqrt(2 * math.log(2 / DELTA) * squares)
    assert composed_epsilon(losses, DELTA, Rule.ADVANCED) == pytest.approx(formula)
    assert composed_epsilon(losses + Counter([pure(0.01, 1e-9)]), DELTA, Rule.ADVANCED) == math.inf


def test_zcdp_is_the_theorems_formula() -> None:
    losses = Counter({gaussian(10.0, DELTA): 8, pure(0.1): 4})
    rho = 8 / (2 * 10.0**2) + 4 * 0.1**2 / 2
    assert composed_epsilon(losses, DELTA, Rule.ZCDP) == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1 / DELTA)))


def test_zcdp_proves_nothing_of_a_mechanism_of_which_epsilon_and_delta_are_all_that_is_known() -> None:
    assert composed_epsilon(Counter([pure(0.1, 1e-9)]), DELTA, Rule.ZCDP) == math.inf


# Tight composition ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "count"), [(0.01, 100), (0.1, 20), (0.5, 60), (1.0, 30), (3.0, 7)])
def test_tight_composition_of_pure_losses_is_the_optimal_one(epsilon: float, count: int) -> None:
    tight = composed_epsilon(Counter({pure(epsilon): count}), DELTA, Rule.TIGHT)
    # The theorem is read off on its grid of 2 epsilon; between two points the distribution may still do better.
    optimal = optimal_composition(epsilon, count, DELTA)
    assert optimal - 2 * epsilon <= tight <= optimal * (1 + 1e-9)


@pytest.mark.parametrize(("multiplier", "count"), [(0.5, 10), (5.0, 100), (20.0, 1000), (1000.0, 50)])
def test_tight_composition_of_gaussians_is_one_gaussian(multiplier: float, count: int) -> None:
    tight = composed_epsilon(Counter({gaussian(multiplier, 1e-9): count}), DELTA, Rule.TIGHT)
    closed_form = gaussian(multiplier / math.sqrt(count), DELTA).epsilon
    assert closed_form * (1 - 1e-6) <= tight <= closed_form * (1 + 1e-4)


def test_laplace_noise_loses_less_than_its_epsilon_alone_tells() -> None:
    known = composed_epsilon(Counter({laplace(0.1): 200}), DELTA, Rule.TIGHT)
    unknown = composed_epsilon(Counter({pure(0.1): 200}), DELTA, Rule.TIGHT)
    assert 0.9 * unknown < known < unknown


def test_the_delta_of_a_loss_is_used_up_by_tight_composition_too() -> None:
    assert composed_epsilon(Counter({pure(0.1, 1e-8): 99}), DELTA, Rule.TIGHT) < 0.1 * 99
    assert composed_epsilon(Counter({pure(0.1, 1e-8): 101}), DELTA, Rule.TIGHT) == math.inf


def test_unlike_losses_chosen_on_the_way_have_no_convolution_but_their_sum() -> None:
    assert composed_epsilon(Counter({pure(0.1): 50, pure(0.2): 50}), DELTA, Rule.TIGHT) == pytest.approx(15)
    assert composed_epsilon(Counter([gaussian(1.0, 1e-9), pure(0.1)]), DELTA, Rule.TIGHT) == math.inf


def test_loading_the_accountant_does_not_load_what_only_tight_composition_needs() -> None:
    code = "import sys, compliance.accountant; sys.exit('dp_accounting' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# What holds for every rule --------------------------------------------------------------------------------------------


def some_losses() -> Iterable[tuple[Counter[Loss], str]]:
    yield Counter({pure(0.1): 40}), "small"
    yield Counter({pure(3.0): 5}), "large"
    yield Counter({pure(1e200): 2}), "huge"
    yield Counter({pure(1e308): 2}), "more than a number holds"
    yield Counter([pure(math.inf)]), "infinite"
    yield Counter({pure(1e-12): 3}), "tiny"


@pytest.mark.parametrize("rule", Rule)
@pytest.mark.parametrize("losses", [pytest.param(losses, id=name) for losses, name in some_losses()])
def test_no_rule_is_worse_than_the_sum_where_the_sum_holds(rule: Rule, losses: Counter[Loss]) -> None:
    basic = composed_epsilon(losses, 0.0, Rule.BASIC)
    assert 0 <= composed_epsilon(losses, DELTA, rule) <= basic
    assert composed_epsilon(losses, 0.0, rule) == basic
    assert composed_epsilon(Counter(), DELTA, rule) == 0.0


@pytest.mark.parametrize("rule", Rule)
@given(
    loss=st.one_of(
        st.floats(1e-2, 3.0).map(pure), st.floats(0.5, 20.0).map(lambda multiplier: gaussian(multiplier, 1e-9))
    ),
    count=st.integers(1, 200),
)
def test_one_more_loss_never_costs_less(rule: Rule, loss: Loss, count: int) -> None:
    fewer, more = (composed_epsilon(Counter({loss: number}), DELTA, rule) for number in (count, count + 1))
    assert fewer <= more * (1 + 1e-6)


@pytest.mark.parametrize(
    ("rule", "covered"), [(Rule.BASIC, 100), (Rule.ADVANCED, 260), (Rule.ZCDP, 270), (Rule.TIGHT, 346)]
)
def test_how_many_queries_a_budget_of_10_covers_at_a_tenth_each(rule: Rule, covered: int) -> None:
    budget, losses = Budget(10.0, DELTA, rule), Counter[Loss]()
    while budget.affords(losses, pure(0.1)):
        losses[pure(0.1)] += 1
    assert losses.total() == covered


@pytest.mark.parametrize(("multiplier", "delta"), [(1.0, 1e-5), (0.3, 1e-6), (50.0, 1e-9), (1e-3, 1e-6), (1e6, 1e-3)])
def test_gaussian_noise_states_the_least_epsilon_at_its_delta(multiplier: float, delta: float) -> None:
    epsilon = gaussian(multiplier, delta).epsilon
    assert 0 < epsilon <= 0.5 / multiplier**2 + math.sqrt(2 * math.log(1 / delta)) / multiplier


def test_a_known_point_of_the_gaussian_trade_off() -> None:
    # From the definition, by quadrature with 50 digits: multiplier 1, epsilon 1 has delta 0.12693673750664395.
    assert gaussian(1.0, 0.12693673750664395).epsilon == pytest.approx(1.0, rel=1e-12)
