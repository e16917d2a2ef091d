import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compliance.accountant import Budget, BudgetExceededError


def test_charges_add_up() -> None:
    budget = Budget(1.0).charge(0.25).charge(0.5)
    assert (budget.spent, budget.remaining) == (0.75, 0.25)
    assert budget.affords(0.25)
    assert not budget.affords(0.26)
    with pytest.raises(BudgetExceededError, match="exceeds"):
        budget.charge(0.26)
    assert budget == Budget(1.0, (0.25, 0.5))


@given(queries=st.integers(1, 10_000), epsilon=st.floats(1e-6, 1e6))
def test_a_split_never_overruns_by_rounding(queries: int, epsilon: float) -> None:
    budget = Budget(epsilon).charge(epsilon / (queries + 1))
    assert budget.affords(epsilon * queries / (queries + 1))
    assert budget.charge(epsilon * queries / (queries + 1)).remaining == pytest.approx(0, abs=1e-9 * epsilon)


def test_many_small_charges_use_the_budget_up_exactly_once() -> None:
    budget = Budget(1.0)
    for _ in range(1000):
        budget = budget.charge(1.0 / 1000)
    assert budget.spent == 1.0
    assert budget.remaining == 0
    # The tolerance is granted once: here it takes no more than a billionth of the limit in all.
    for _ in range(10):
        if budget.affords(2e-10):
            budget = budget.charge(2e-10)
    assert budget.spent <= 1 + 1e-9
    assert budget.remaining == 0


@given(st.lists(st.floats(1e-3, 1.0), max_size=50), st.floats(0.1, 10.0))
def test_spending_never_exceeds_the_limit(charges: list[float], limit: float) -> None:
    budget = Budget(limit)
    for charge in charges:
        if budget.affords(charge):
            budget = budget.charge(charge)
        else:
            with pytest.raises(BudgetExceededError):
                budget.charge(charge)
    assert budget.spent <= limit * (1 + 1e-9)


def test_no_limit() -> None:
    budget = Budget(math.inf).charge(1e6)
    assert (budget.spent, budget.remaining) == (1e6, math.inf)
    budget = budget.charge(math.inf).charge(math.inf)
    assert (budget.spent, budget.remaining) == (math.inf, math.inf)
    assert budget.affords(1.0)


def test_an_infinite_charge_needs_an_infinite_limit() -> None:
    assert not Budget(1e300).affords(math.inf)
    with pytest.raises(BudgetExceededError):
        Budget(1e300).charge(math.inf)


@pytest.mark.parametrize("charge", [0.0, -0.1, math.nan, -math.inf])
def test_charges_out_of_range_are_refused(charge: float) -> None:
    for limit in (1.0, math.inf):
        with pytest.raises(ValueError, match="charge must be above 0"):
            Budget(limit).charge(charge)
        with pytest.raises(ValueError, match="charge must be above 0"):
            Budget(limit).affords(charge)


@pytest.mark.parametrize("limit", [-1.0, math.nan])
def test_limits_out_of_range_are_refused(limit: float) -> None:
    with pytest.raises(ValueError, match="limit"):
        Budget(limit)


def test_a_limit_of_zero_affords_nothing() -> None:
    assert not Budget(0.0).affords(1e-300)
