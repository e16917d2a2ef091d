"""The purse: what each request of a deal may spend, and what it is called."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from developer.reveal.auditor import Purse


@given(batches=st.lists(st.integers(1, 400), min_size=1, max_size=8), epsilon=st.floats(1e-6, 1e6))
def test_each_query_gets_the_same_share_and_together_they_get_everything(batches: list[int], epsilon: float) -> None:
    planned = sum(batches)
    purse = Purse(epsilon, "laplace", planned)
    taken = [purse.take("metric", queries) for queries in batches]
    assert [name for name, _ in taken] == [f"metric-{number + 1}" for number in range(len(batches))]
    assert [share for _, share in taken] == pytest.approx([epsilon * queries / planned for queries in batches])
    assert math.fsum(share for _, share in taken) == pytest.approx(epsilon, rel=1e-15)
    # A budget is compared as it is written, and exactly.
    assert sum(Fraction(repr(share)) for _, share in taken) <= Fraction(repr(epsilon))


def test_a_budget_of_a_few_digits_is_shared_out_to_the_end() -> None:
    for epsilon, batches in ((100.0, [1, 40]), (400.0, [1, 16]), (5.0, [1, 1, 1]), (0.3, [2, 5])):
        purse = Purse(epsilon, "laplace", sum(batches))
        assert sum(Fraction(repr(purse.take("metric", queries)[1])) for queries in batches) == Fraction(repr(epsilon))


def test_of_randomised_response_the_first_request_buys_all_the_others() -> None:
    purse = Purse(2.0, "randomized-response", 50)
    assert [purse.take(kind, queries)[1] for kind, queries in (("size", 1), ("metric", 1), ("metric", 48))] == [2.0] * 3


def test_an_infinite_budget_is_infinite_for_everybody() -> None:
    purse = Purse(math.inf, "laplace", 3)
    assert [purse.take("metric", 1)[1] for _ in range(3)] == [math.inf] * 3
