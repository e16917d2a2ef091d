"""Request ids of the reveal game, and what they tell."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairwall.wire.queries import Kind, deal_of, kind_of, request_id, round_of, size_queries, trained_on

KINDS: tuple[Kind, ...] = get_args(Kind)


@given(kind=st.sampled_from(KINDS), number=st.integers(1, 10**12))
def test_an_id_tells_its_kind_and_is_one_that_compliance_takes(kind: Kind, number: int) -> None:
    name = request_id(kind, number)
    assert kind_of(name) == kind
    assert len(name) <= 64
    assert name.isascii()
    assert name.isprintable()


@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 1000)), unique=True))
def test_different_requests_have_different_ids(requests: list[tuple[Kind, int]]) -> None:
    assert len({request_id(*request) for request in requests}) == len(requests)


def test_a_case_tells_its_deal() -> None:
    cases = [trained_on("deal-1"), *(round_of("deal-1", number) for number in range(1, 12))]
    assert len(set(cases)) == 12
    assert {deal_of(case) for case in cases} == {round_of("deal-1", 1)} == {"deal-1"}


@pytest.mark.parametrize("name", ["", "size", "size-", "size-x", "sizes-1", "Size-1", " size-1", "request-1", "1-size"])
def test_an_id_that_tells_no_kind_is_refused_in_one_line(name: str) -> None:
    with pytest.raises(ValueError, match=r"^request id '.*' does not name its kind, as size-1 does: one of look, "):
        kind_of(name)


@pytest.mark.parametrize(
    ("name", "sizes"), [("look-1", 0), ("metric-1", 0), ("size-1", 4), ("reference-1", 4), ("sized-1", 1)]
)
def test_of_a_batch_the_first_queries_are_size_queries(name: str, sizes: int) -> None:
    assert size_queries(name, 4) == sizes
