"""A study's table over mTLS: drawn and charged once, within the budget, and told to nobody but the developer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from compliance.answers.releases import ReleaseService
from compliance.answers.studies import Study, game_study
from fairwall.compliance.v1 import release_service_pb2 as wire
from fairwall.compliance.v1.release_service_pb2_grpc import (
    ReleaseServiceStub,
    add_ReleaseServiceServicer_to_server,
)
from fairwall.rpc.arrays import gathered
from fairwall.wire.v1 import error_pb2 as error
from tests.contract.refused import refusal

CELLS = np.array([0, 1, 1, 3, 1])
ANSWERS = np.array([1, 1, 0, 1, 1], dtype=np.uint8)


def opened(epsilon: float, *, records: bool = False) -> Study:
    return game_study("deal", CELLS, ANSWERS, 4, epsilon, None, records=records)


@pytest.fixture
def studies() -> dict[str, Study]:
    return {"deal": opened(2.0), "exact": opened(math.inf), "records": opened(math.inf, records=True)}


@pytest.fixture
def address(serve: Any, credentials: Any, studies: dict[str, Study]) -> str:
    def register(server: Any) -> None:
        add_ReleaseServiceServicer_to_server(ReleaseService({}, studies), server)

    found: str = serve(register, credentials["compliance"])
    return found


@pytest.fixture
def releases(address: str, dial: Any, credentials: Any) -> ReleaseServiceStub:
    return ReleaseServiceStub(dial(address, "compliance", credentials["developer"]))


def table(releases: ReleaseServiceStub, deal_id: str, epsilon: float, request_id: str = "r") -> tuple[Any, list[Any]]:
    request = wire.TabulateRequest(request_id=request_id, deal_id=deal_id, epsilon=epsilon)
    first, *parts = releases.Tabulate(request, timeout=300)
    values = gathered(first.header.table, (part.table_chunk for part in parts))
    return first.header, values.tolist()


def test_counts_without_noise_and_records_are_the_studys(releases: ReleaseServiceStub) -> None:
    assert table(releases, "exact", math.inf)[1] == [1, 2, 0, 1]
    assert table(releases, "records", math.inf)[1] == np.column_stack([CELLS, ANSWERS]).tolist()


def test_a_table_is_drawn_and_charged_once(releases: ReleaseServiceStub) -> None:
    header, first = table(releases, "deal", 1.5)
    assert (header.epsilon_charged, header.epsilon_remaining) == (1.5, 0.5)
    assert all(float(count).is_integer() for count in first)
    assert table(releases, "deal", 1.5) == (header, first)
    assert refusal(lambda: table(releases, "deal", 0.5)) == error.REASON_REQUEST_ID_REUSED
    assert refusal(lambda: table(releases, "deal", 0.6, "other")) == error.REASON_BUDGET_EXHAUSTED
    assert table(releases, "deal", 0.5, "other")[0].epsilon_remaining == 0


def test_records_have_no_epsilon(releases: ReleaseServiceStub, studies: dict[str, Study]) -> None:
    studies["deal"] = opened(5.0, records=True)
    assert refusal(lambda: table(releases, "deal", 1.0)) == error.REASON_BUDGET_EXHAUSTED


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan])
def test_what_cannot_be_spent_is_refused(releases: ReleaseServiceStub, epsilon: float) -> None:
    assert refusal(lambda: table(releases, "deal", epsilon)) == error.REASON_EPSILON_INVALID
    assert refusal(lambda: table(releases, "another", 1.0)) == error.REASON_DEAL_UNKNOWN


def test_nobody_but_the_developer_gets_it(address: str, dial: Any, credentials: Any) -> None:
    outside = ReleaseServiceStub(dial(address, "compliance", credentials["adversary"]))
    assert refusal(lambda: table(outside, "exact", math.inf)) == error.REASON_CALLER_NOT_ALLOWED
