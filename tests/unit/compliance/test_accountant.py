from __future__ import annotations

import importlib
import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from compliance.ledger.accountant import Budget, Loss, LossKind, Rule, composed_epsilon, pure
from compliance.mechanisms.noise_on_gaps import gaussian_cost
from fairwall.laws.noise.gaussian import gaussian_epsilon
from fairwall.laws.privacy.amounts import part_of

DELTA = 1e-6


def composed(losses: Mapping[Loss, int], delta: float, rule: Rule) -> float:
    return float(composed_epsilon(losses, delta, rule))


def exactly(losses: Mapping[Loss, int]) -> Fraction:
    """The sum of what was written, as a rational number."""
    return sum((count * Fraction(repr(loss.epsilon)) for loss, count in losses.items()), Fraction(0))


def charged(*epsilons: float) -> Counter[Loss]:
    return Counter(map(pure, epsilons))


def gaussian(multiplier: float, delta: float) -> Loss:
    return Loss(gaussian_epsilon(multiplier, delta), delta, LossKind.GAUSSIAN, multiplier)


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


AMOUNTS = st.one_of(
    st.floats(1e-12, 1e3),
    st.integers(1, 10**6).map(lambda millionths: millionths / 10**6),
    st.sampled_from([0.1, 0.2, 0.3, 0.7, 1e-12, 1 / 3]),
)


def as_decimal(numerator: int, digits: int) -> float:
    """Read numerator / 10^digits as it is written."""
    return float(f"{numerator}e-{digits}")


def fill(budget: Budget, epsilons: Iterable[float]) -> Counter[Loss]:
    losses = Counter[Loss]()
    for epsilon in epsilons:
        if budget.affords(losses, pure(epsilon)):
            losses[pure(epsilon)] += 1
    return losses


@given(epsilons=st.lists(AMOUNTS, max_size=50), limit=AMOUNTS)
def test_no_series_of_charges_exceeds_the_limit_by_anything(epsilons: list[float], limit: float) -> None:
    budget = Budget(limit)
    losses = fill(budget, epsilons)
    assert exactly(losses) <= Fraction(repr(limit))
    # What is told is rounded to a float64, to the safe side.
    assert Fraction(repr(budget.spent(losses))) >= exactly(losses)
    assert Fraction(repr(budget.remaining(losses))) <= Fraction(repr(limit)) - exactly(losses)


@given(epsilons=st.lists(AMOUNTS, max_size=20), limit=AMOUNTS)
def test_what_is_told_to_be_left_can_be_charged_and_the_next_number_cannot(epsilons: list[float], limit: float) -> None:
    budget = Budget(limit)
    losses = fill(budget, epsilons)
    left = budget.remaining(losses)
    assert not left or budget.affords(losses, pure(left))
    assert not budget.affords(losses, pure(math.nextafter(left, math.inf)))


@given(numerator=st.integers(1, 10**12), digits=st.integers(0, 15), parts=st.integers(1, 1000))
def test_a_budget_shared_out_in_equal_decimals_is_spent_to_the_end(numerator: int, digits: int, parts: int) -> None:
    share, budget = as_decimal(numerator, digits), Budget(as_decimal(numerator * parts, digits))
    losses = Counter({pure(share): parts - 1})
    assert budget.affords(losses, pure(share))
    losses[pure(share)] += 1
    assert (budget.spent(losses), budget.remaining(losses)) == (budget.epsilon, 0.0)
    assert not budget.affords(losses, pure(5e-324))


def test_shares_whose_floats_add_up_to_too_much_fit_and_not_a_trillionth_more() -> None:
    for limit, share, times in ((1.0, 0.1, 10), (0.3, 0.1, 3), (2.0, 0.001, 2000), (1.1, 0.11, 10), (0.07, 0.01, 7)):
        budget, losses = Budget(limit), Counter({pure(share): times - 1})
        assert budget.affords(losses, pure(share))
        assert budget.needed(losses, pure(share)) == budget.remaining(losses) == share
        losses[pure(share)] += 1
        assert budget.remaining(losses) == 0.0
        assert not budget.affords(losses, pure(1e-12))


@given(whole=AMOUNTS, parts=st.integers(1, 1000))
def test_a_part_of_a_budget_fits_so_many_times_and_the_next_number_does_not(whole: float, parts: int) -> None:
    budget, part = Budget(whole), part_of(whole, parts)
    assert not part or budget.affords(Counter({pure(part): parts - 1}), pure(part))
    more = pure(math.nextafter(part, math.inf))
    assert not budget.affords(Counter({more: parts - 1}), more)


def test_the_largest_and_the_smallest_amounts_add_up_without_rounding() -> None:
    for rule in Rule:
        losses = Counter([pure(1.7e308), pure(5e-324)])
        assert not Budget(1.7e308, DELTA, rule).affords(Counter([pure(1.7e308)]), pure(5e-324))
        assert composed_epsilon(losses, DELTA, rule) > Decimal(repr(1.7e308))


def test_deltas_are_compared_exactly_too() -> None:
    tenth, rest = pure(0.1, 1e-6), Counter({pure(0.1, 1e-6): 9})
    assert Budget(10.0, 1e-5).affords(rest, tenth)
    assert Budget(10.0, 2e-5, Rule.ADVANCED).affords(rest, tenth)
    for rule, delta in ((Rule.BASIC, 1e-5), (Rule.ADVANCED, 2e-5)):
        assert not Budget(10.0, delta, rule).affords(rest + Counter([pure(0.1, 1e-18)]), tenth)


def test_a_refused_loss_needs_more_than_is_left_by_every_rule() -> None:
    for rule in Rule:
        budget, losses = Budget(2.0, DELTA, rule), Counter[Loss]()
        while budget.affords(losses, pure(0.3)):
            losses[pure(0.3)] += 1
        assert budget.needed(losses, pure(0.3)) > budget.remaining(losses) > 0
        assert budget.needed(losses, pure(0.3, 0.5)) == math.inf


def pure_rho(epsilon: float) -> Decimal:
    """Return epsilon tanh(epsilon/2)."""
    power = Decimal(repr(epsilon)).exp()
    return Decimal(repr(epsilon)) * (power - 1) / (power + 1)


def test_epsilon_alone_has_no_larger_renyi_divergence_than_its_rho_says_and_no_smaller_rho_will_do() -> None:
    for epsilon in (1e-3, 0.1, 1.0, 2.0, 5.0, 20.0):
        # Of randomised response, order by order, in exact arithmetic's stead with 60 digits.
        ratios = []
        with localcontext(prec=60):
            kept = Decimal(repr(epsilon)).exp() / (1 + Decimal(repr(epsilon)).exp())
            for order in (Decimal("1.0001"), Decimal("1.5"), Decimal(2), Decimal(5), Decimal(40)):
                moment = sum(p**order * q ** (1 - order) for p, q in ((kept, 1 - kept), (1 - kept, kept)))
                ratios.append(moment.ln() / (order - 1) / order / pure_rho(epsilon))
        assert 1 - 1e-3 * max(1.0, epsilon) <= ratios[0] <= 1
        assert max(ratios) <= 1


@given(losses=st.dictionaries(st.floats(1e-6, 10).map(pure), st.integers(1, 100), min_size=1, max_size=5))
def test_roots_and_logarithms_are_rounded_upwards(losses: dict[Loss, int]) -> None:
    with localcontext(prec=200):
        squares = sum((count * Decimal(repr(loss.epsilon)) ** 2 for loss, count in losses.items()), Decimal(0))
        log, plain = -Decimal(repr(DELTA)).ln(), Decimal(exactly(losses).numerator) / exactly(losses).denominator
        rho = sum((count * pure_rho(loss.epsilon) for loss, count in losses.items()), Decimal(0))
        zcdp = rho + 2 * (rho * log).sqrt()
        advanced = squares / 2 + (2 * (log + Decimal(2).ln()) * squares).sqrt()
        for rule, truth in ((Rule.ZCDP, min(zcdp, plain)), (Rule.ADVANCED, min(advanced, plain))):
            assert truth <= composed_epsilon(losses, DELTA, rule) <= truth * (1 + Decimal("1e-30"))


def test_no_limit_and_nothing() -> None:
    assert not Budget(1e300).affords(Counter(), pure(math.inf))
    assert not Budget(0.0).affords(Counter(), pure(1e-300))
    assert Budget(0.0).spent(Counter()) == 0
    budget = Budget(math.inf)
    assert (budget.spent(charged(1e6)), budget.remaining(charged(1e6))) == (1e6, math.inf)
    losses = charged(math.inf, math.inf)
    assert (budget.spent(losses), budget.remaining(losses)) == (math.inf, math.inf)
    assert budget.affords(losses, pure(1.0))


# What is out of range -------------------------------------------------------------------------------------------------


def test_charges_out_of_range_are_refused() -> None:
    for epsilon in (0.0, -0.1, math.nan, -math.inf):
        for law in (LossKind.ANY, LossKind.LAPLACE):
            with pytest.raises(ValueError, match="charge must be above 0"):
                Loss(epsilon, law=law)


def test_a_charge_of_nothing_has_no_price() -> None:
    for epsilon, delta in ((0.1, 0.0), (0.0, 1e-9), (0.1, 1e-9)):
        with pytest.raises(ValueError, match="charge of nothing"):
            Loss(epsilon, delta, LossKind.NOTHING)


def test_deltas_out_of_range_are_refused() -> None:
    for delta in (-1e-9, 1.0, math.nan):
        with pytest.raises(ValueError, match="delta"):
            pure(1.0, delta)
        with pytest.raises(ValueError, match="delta"):
            Budget(1.0, delta)


def test_multipliers_out_of_range_are_refused() -> None:
    for multiplier in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match="multiplier"):
            Loss(1.0, DELTA, LossKind.GAUSSIAN, multiplier)


def test_only_gaussian_noise_has_a_multiplier() -> None:
    with pytest.raises(ValueError, match="multiplier"):
        Loss(1.0, multiplier=1.0)


def test_limits_out_of_range_are_refused() -> None:
    for limit in (-1.0, math.nan):
        with pytest.raises(ValueError, match="limit"):
            Budget(limit)


# Advanced composition and zCDP ----------------------------------------------------------------------------------------


def test_advanced_composition_keeps_half_of_delta_for_the_charges() -> None:
    losses = Counter({pure(0.01, 1e-9): 500})
    squares = 500 * 0.01**2
    formula = squares / 2 + math.sqrt(2 * math.log(2 / DELTA) * squares)
    assert composed(losses, DELTA, Rule.ADVANCED) == pytest.approx(formula)
    assert composed(losses + Counter([pure(0.01, 1e-9)]), DELTA, Rule.ADVANCED) == math.inf


def test_zcdp_is_the_theorems_formula() -> None:
    losses = Counter({gaussian(10.0, DELTA): 8, pure(0.1): 4})
    rho = 8 / (2 * 10.0**2) + 4 * 0.1 * math.tanh(0.05)
    assert composed(losses, DELTA, Rule.ZCDP) == pytest.approx(rho + 2 * math.sqrt(rho * math.log(1 / DELTA)))


def test_zcdp_proves_nothing_of_a_mechanism_of_which_epsilon_and_delta_are_all_that_is_known() -> None:
    assert composed(Counter([pure(0.1, 1e-9)]), DELTA, Rule.ZCDP) == math.inf


# Tight composition ----------------------------------------------------------------------------------------------------


def test_tight_composition_of_pure_losses_is_the_optimal_one() -> None:
    for epsilon, count in ((0.01, 100), (0.1, 20), (0.5, 60), (1.0, 30), (3.0, 7)):
        tight = composed(Counter({pure(epsilon): count}), DELTA, Rule.TIGHT)
        # The theorem is read off on its grid of 2 epsilon; between two points the distribution may still do better.
        # Half of delta is for series that do not stay alike.
        optimal = optimal_composition(epsilon, count, DELTA / 2)
        assert optimal - 2 * epsilon <= tight <= optimal * (1 + 1e-9)


def test_tight_composition_of_gaussians_is_one_gaussian() -> None:
    for multiplier, count in ((0.5, 10), (5.0, 100), (20.0, 1000), (1000.0, 50)):
        tight = composed(Counter({gaussian(multiplier, 1e-9): count}), DELTA, Rule.TIGHT)
        closed_form = gaussian_epsilon(multiplier / math.sqrt(count), DELTA)
        assert closed_form <= tight <= closed_form * (1 + 1e-8)


def test_laplace_noise_loses_less_than_its_epsilon_alone_tells() -> None:
    known = composed(Counter({Loss(0.1, law=LossKind.LAPLACE): 200}), DELTA, Rule.TIGHT)
    unknown = composed(Counter({pure(0.1): 200}), DELTA, Rule.TIGHT)
    assert 0.9 * unknown < known < unknown


def test_the_delta_of_a_loss_is_used_up_by_tight_composition_too() -> None:
    assert composed(Counter({pure(0.1, 1e-8): 49}), DELTA, Rule.TIGHT) < 0.1 * 49
    assert composed(Counter({pure(0.1, 1e-8): 51}), DELTA, Rule.TIGHT) == math.inf


def test_gaussians_of_any_multipliers_are_one_gaussian() -> None:
    losses = Counter({gaussian(5.0, 1e-9): 3, gaussian(8.0, 1e-9): 2, gaussian(20.0, 1e-7): 7})
    one = 1 / math.sqrt(3 / 25 + 2 / 64 + 7 / 400)
    assert composed(losses, DELTA, Rule.TIGHT) == pytest.approx(gaussian_epsilon(one, DELTA), rel=1e-8)


def test_gaussian_noise_is_proved_nothing_of_without_a_delta_nor_beside_a_loss_without_limit() -> None:
    noise = gaussian(1.0, 1e-9)
    for losses in ({noise: 2}, {noise: 1, gaussian(2.0, 1e-9): 1}, {noise: 1, pure(0.1): 1}):
        assert composed(losses, 0.0, Rule.TIGHT) == math.inf
    for endless in (pure(math.inf), pure(1e3)):
        assert composed({noise: 1, endless: 1}, DELTA, Rule.TIGHT) == math.inf


def test_a_second_developer_at_another_epsilon_is_answered() -> None:
    # At 490a673 nothing was afforded after the first, for ever.
    for cost in (gaussian_cost, pure):
        budget, first = Budget(2.0, DELTA, Rule.TIGHT), Counter({cost(0.1, 1e-8): 1})
        assert budget.affords(first, cost(0.2, 1e-8))
        assert budget.affords(first + Counter([cost(0.2, 1e-8)]), cost(0.15, 1e-8))


def test_many_unlike_small_losses_cost_less_than_their_sum() -> None:
    budget, losses = Budget(2.0, DELTA, Rule.TIGHT), Counter[Loss]()
    while budget.affords(losses, pure(0.01)) and budget.affords(losses, pure(0.02)):
        losses.update([pure(0.01), pure(0.02)])
    assert sum(count * loss.epsilon for loss, count in losses.items()) > 2 * 2.0


def distribution(loss: Loss) -> Any:
    plds = importlib.import_module("dp_accounting.pld.privacy_loss_distribution")
    if loss.law is LossKind.GAUSSIAN:
        return plds.from_gaussian_mechanism(loss.multiplier, value_discretization_interval=1e-3)
    if loss.law is LossKind.LAPLACE:
        return plds.from_laplace_mechanism(1 / loss.epsilon, value_discretization_interval=1e-3)
    parameters = plds.common.DifferentialPrivacyParameters(loss.epsilon, loss.delta)
    return plds.from_privacy_parameters(parameters, value_discretization_interval=1e-3)


KINDS = (
    pure(0.2),
    pure(0.9),
    pure(0.5, 1e-5),
    Loss(0.3, law=LossKind.LAPLACE),
    gaussian(2.0, 1e-5),
    gaussian(7.0, 1e-5),
)


@pytest.mark.check
def test_no_series_is_proved_to_lose_less_than_it_does() -> None:
    # Every series of up to three of each of two kinds, against the convolution, its grid rounded downwards.
    delta, proved = 1e-3, 0
    for a, b in itertools.combinations(KINDS, 2):
        for i, j in itertools.product(range(1, 4), repeat=2):
            pair = distribution(a).self_compose(i).compose(distribution(b).self_compose(j))
            truth = pair.get_epsilon_for_delta(delta) - (i + j) * 1e-3
            told = float(composed_epsilon(Counter({a: i, b: j}), delta, Rule.TIGHT, 5.0))
            assert told >= truth
            proved += told < math.inf
    assert proved > 100


def most_that_can_be_lost(budget: Budget, kinds: tuple[float, ...], afforded: Affords) -> float:
    """The largest hockey-stick at the budget's epsilon of any way to choose pure losses after each answer.

    Randomised response is as bad as an epsilon allows: each answer moves the privacy loss up or down by epsilon. So a
    state is what was charged and the loss, and who asks goes the way that promises most.
    """
    known: dict[tuple[tuple[int, ...], int], float] = {}

    def most(counts: tuple[int, ...], lost: int) -> float:
        key = (counts, lost)
        if key not in known:
            best = max(0.0, -math.expm1(budget.epsilon - lost * UNIT))
            losses = Counter({pure(kind): count for kind, count in zip(kinds, counts, strict=True) if count})
            for place, kind in enumerate(kinds):
                if not afforded(budget, losses, pure(kind)):
                    continue
                after = (*counts[:place], counts[place] + 1, *counts[place + 1 :])
                up, steps = 1 / (1 + math.exp(-kind)), round(kind / UNIT)
                best = max(best, up * most(after, lost + steps) + (1 - up) * most(after, lost - steps))
            known[key] = best
        return known[key]

    return most((0,) * len(kinds), 0)


Affords = Callable[[Budget, Counter[Loss], Loss], bool]
UNIT = 0.05


@pytest.mark.check
def test_no_way_to_choose_losses_exceeds_the_budget() -> None:
    for epsilon, delta, kinds in ((0.6, 0.2, (0.1, 0.15)), (0.4, 0.3, (0.1, 0.25)), (0.5, 0.1, (0.05, 0.1, 0.2))):
        budget = Budget(epsilon, delta, Rule.TIGHT)
        assert 0 < most_that_can_be_lost(budget, kinds, Budget.affords) <= delta


CELL, CELLS = 0.01, 600
"""The privacy loss on a grid: a Gaussian one is laid on its nearest cell, so deltas are compared with 0.1% of slack."""


def law_of(loss: Loss) -> Any:
    """The probability of each step that one answer's privacy loss can take."""
    steps = CELL * np.arange(-CELLS, CELLS + 1)
    if loss.law is LossKind.GAUSSIAN:
        mu = 1 / loss.multiplier
        ends = [(steps + side * CELL / 2 - mu * mu / 2) / mu for side in (1, -1)]
        return ndtr(ends[0]) - ndtr(ends[1])
    law = np.zeros(steps.size)
    law[CELLS + np.array([1, -1]) * round(loss.epsilon / CELL)] = np.array([1, math.exp(-loss.epsilon)])
    return law / law.sum()


def most_of_any_kinds(budget: Budget, kinds: tuple[Loss, ...], afforded: Affords) -> float:
    """As `most_that_can_be_lost`, for Gaussian noise too."""
    stopped = np.maximum(0.0, -np.expm1(budget.epsilon - CELL * np.arange(-CELLS, CELLS + 1)))

    @cache
    def most(counts: tuple[int, ...]) -> Any:
        best, losses = stopped, Counter({kind: count for kind, count in zip(kinds, counts, strict=True) if count})
        for place, kind in enumerate(kinds):
            if afforded(budget, losses, kind):
                after = most((*counts[:place], counts[place] + 1, *counts[place + 1 :]))
                best = np.maximum(best, np.convolve(np.pad(after, CELLS, "edge"), law_of(kind)[::-1], "valid"))
        return best

    return float(most((0,) * len(kinds))[CELLS])


MIXED = (
    (0.5, 0.1, (gaussian(4.0, 1e-3), gaussian(6.0, 1e-3))),
    (0.5, 0.1, (gaussian(4.0, 1e-3), pure(0.1))),
    (1.0, 0.02, (gaussian(5.0, 1e-3), pure(0.2), pure(0.1))),
    (0.3, 0.2, (gaussian(3.0, 1e-3), pure(0.1), pure(0.2))),
)


@pytest.mark.few(2)
@pytest.mark.parametrize(("epsilon", "delta", "kinds"), MIXED)
def test_no_way_to_choose_gaussian_and_other_losses_exceeds_the_budget(
    epsilon: float, delta: float, kinds: tuple[Loss, ...]
) -> None:
    budget = Budget(epsilon, delta, Rule.TIGHT)
    # Nearly all of delta can be used up, too.
    assert 0.8 * delta < most_of_any_kinds(budget, kinds, Budget.affords) <= delta * 1.001


def test_counting_each_kind_apart_exceeds_the_budget_and_is_seen() -> None:
    epsilon, delta, kinds = MIXED[0]

    def apart(budget: Budget, losses: Counter[Loss], loss: Loss) -> bool:
        return budget.affords({loss: losses[loss]} if loss in losses else {}, loss)

    assert most_of_any_kinds(Budget(epsilon, delta, Rule.TIGHT), kinds, apart) > delta * 1.1


def test_a_convolution_of_unlike_losses_exceeds_the_budget_and_is_seen() -> None:
    # The broken twin: the exact loss of each series as it stands, which is no bound of one that is chosen on the way.
    def convolved(budget: Budget, losses: Counter[Loss], loss: Loss) -> bool:
        states = {0: 1.0}
        for one in (losses + Counter([loss])).elements():
            up, steps = 1 / (1 + math.exp(-one.epsilon)), round(one.epsilon / UNIT)
            moved = Counter[int]()
            for lost, weight in states.items():
                moved[lost + steps] += up * weight  # type: ignore[assignment]
                moved[lost - steps] += (1 - up) * weight  # type: ignore[assignment]
            states = moved  # type: ignore[assignment]
        found = sum(weight * max(0.0, -math.expm1(budget.epsilon - lost * UNIT)) for lost, weight in states.items())
        return found <= budget.delta

    assert most_that_can_be_lost(Budget(0.5, 0.01, Rule.TIGHT), (0.1, 0.15), convolved) > 0.01


# What holds for every rule --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", Rule)
def test_no_rule_is_worse_than_the_sum_where_the_sum_holds(rule: Rule) -> None:
    for losses in (
        Counter({pure(0.1): 40}),
        Counter({pure(3.0): 5}),
        Counter({pure(1e200): 2}),
        Counter({pure(1e308): 2}),  # more than a number holds
        Counter([pure(math.inf)]),
        Counter({pure(1e-12): 3}),
    ):
        basic = composed(losses, 0.0, Rule.BASIC)
        assert 0 <= composed(losses, DELTA, rule) <= basic
        assert composed(losses, 0.0, rule) == basic
    assert composed(Counter(), DELTA, rule) == 0.0


@pytest.mark.few(1)
@pytest.mark.parametrize("rule", Rule)
@given(
    loss=st.one_of(
        st.floats(1e-2, 3.0).map(pure), st.floats(0.5, 20.0).map(lambda multiplier: gaussian(multiplier, 1e-9))
    ),
    count=st.integers(1, 200),
)
def test_one_more_loss_never_costs_less(rule: Rule, loss: Loss, count: int) -> None:
    fewer, more = (composed(Counter({loss: number}), DELTA, rule) for number in (count, count + 1))
    assert fewer <= more * (1 + 1e-6)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("rule", "covered"), [(Rule.BASIC, 100), (Rule.ADVANCED, 260), (Rule.ZCDP, 270), (Rule.TIGHT, 332)]
)
def test_how_many_queries_a_budget_of_10_covers_at_a_tenth_each(rule: Rule, covered: int) -> None:
    budget, losses = Budget(10.0, DELTA, rule), Counter[Loss]()
    while budget.affords(losses, pure(0.1)):
        losses[pure(0.1)] += 1
    assert losses.total() == covered
