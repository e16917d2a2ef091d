"""Counts by group over mTLS: refused for closed reasons, charged once, and bound to what the terms said."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.answers.audits import game_case
from compliance.answers.charging import DEVELOPER
from compliance.answers.group_service import EPSILON_MIN, GroupService
from compliance.answers.groups import GroupCase
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.records.groups import Attribute, Grouped
from compliance.records.people import Records
from compliance.records.rows import FileRows, identified
from fairwall.client.by_group import ByGroup
from fairwall.compliance.v1 import group_service_pb2 as wire
from fairwall.compliance.v1.group_service_pb2_grpc import GroupServiceStub, add_GroupServiceServicer_to_server
from fairwall.rpc.arrays import ArrayError, from_message, header_of
from fairwall.wire.v1 import error_pb2 as error
from tests.contract.refused import refusal

PEOPLE = 12
LABELS = np.arange(PEOPLE, dtype=np.uint8) % 2
CODES = np.array([np.arange(PEOPLE) % 3, np.arange(PEOPLE) // 6], np.uint8)
DECISIONS = (np.arange(PEOPLE) % 4 == 0).astype(float)[np.newaxis]
SELECTION, FALSE_POSITIVES = wire.MEASURE_SELECTION_RATE, wire.MEASURE_FALSE_POSITIVE_RATE


def opened(values: tuple[str, ...] = ("a", "b", "c")) -> GroupCase:
    case = game_case(
        "deal",
        Records(LABELS, CODES[1], ("sp", "eo")),
        MECHANISMS["laplace"],
        Budget(2.0),
        delta=0.0,
        queries_max=2,
        seed=b"seed",
    )
    attributes = Attribute("kind", values), Attribute("half", ("first", "second"))
    return GroupCase(case, Grouped(attributes, CODES, LABELS), 0.1)


@pytest.fixture
def cases() -> dict[str, GroupCase]:
    return {"deal": opened()}


@pytest.fixture
def groups(serve: Any, dial: Any, credentials: Any, cases: dict[str, GroupCase]) -> GroupServiceStub:
    address = serve(
        lambda server: add_GroupServiceServicer_to_server(GroupService(cases), server), credentials["compliance"]
    )
    return GroupServiceStub(dial(address, "compliance", credentials["developer"]))


def ask(groups: GroupServiceStub, predictions: NDArray[Any] = DECISIONS, **changes: Any) -> wire.ByGroupResponse:
    fields: dict[str, Any] = {
        "request_id": "r",
        "deal_id": "deal",
        "by": ["kind", "half"],
        "measures": [SELECTION],
        "epsilon": 0.5,
        "predictions": header_of(predictions),
        **changes,
    }
    parts = (
        wire.ByGroupRequest(header=wire.ByGroupHeader(**fields)),
        wire.ByGroupRequest(predictions_chunk=predictions.tobytes()),
    )
    answer: wire.ByGroupResponse = groups.ByGroup(iter(parts), timeout=300)
    return answer


def test_the_terms_are_the_policys(groups: GroupServiceStub) -> None:
    terms = groups.GetGroupTerms(wire.GetGroupTermsRequest(deal_id="deal"), timeout=300)
    assert {each.name: list(each.values) for each in terms.attributes} == {
        "kind": ["a", "b", "c"],
        "half": ["first", "second"],
    }
    assert FALSE_POSITIVES not in terms.measures
    assert (terms.people, terms.least_share, terms.epsilon, terms.epsilon_remaining) == (PEOPLE, 0.1, 2.0, 2.0)


def test_a_request_is_counted_and_charged_once(groups: GroupServiceStub) -> None:
    first, again = ask(groups), ask(groups)
    assert first == again
    assert first.release.groups == 6
    assert (first.epsilon_charged, first.epsilon_remaining) == (0.5, 1.5)
    other = ask(groups, request_id="other")
    assert other.release != first.release
    assert ask(groups).epsilon_remaining_now == other.epsilon_remaining == 1.0


def test_an_answer_says_what_it_is_about(groups: GroupServiceStub) -> None:
    """Whoever has nothing but the answer reads the same as who has asked; what does not say so is not read."""
    asked = [wire.MEASURE_TRUE_POSITIVE_RATE, SELECTION]
    release = ask(groups, by=["half", "kind"], measures=asked).release
    assert [(each.name, list(each.values)) for each in release.by] == [
        ("half", ["first", "second"]),
        ("kind", ["a", "b", "c"]),
    ]
    assert (list(release.measures), release.least_share) == (asked, 0.1)
    found = ByGroup.read(release, epsilon_charged=0.5, epsilon_remaining=1.5, epsilon_remaining_now=1.5)
    assert (found.models, found.groups[1]) == (1, ("first", "b"))
    for field in ("by", "measures", "groups", "tables"):
        less = wire.GroupRelease.FromString(release.SerializeToString())
        less.ClearField(field)
        with pytest.raises(ArrayError, match="does not say what it is about"):
            ByGroup.read(less, epsilon_charged=0.5, epsilon_remaining=1.5, epsilon_remaining_now=1.5)


def test_an_id_stands_for_one_request(groups: GroupServiceStub) -> None:
    ask(groups)
    others: tuple[dict[str, Any], ...] = (
        {"epsilon": 0.25},
        {"by": ["half", "kind"]},
        {"measures": [SELECTION, wire.MEASURE_TRUE_POSITIVE_RATE]},
        {"given": 1 - DECISIONS},
    )
    for changes in others:
        asked = {"given": DECISIONS, **changes}
        given = asked.pop("given")
        reason = refusal(lambda given=given, asked=asked: ask(groups, given, **asked))  # type: ignore[misc]
        assert reason == error.REASON_REQUEST_ID_REUSED, changes


def test_an_id_stands_for_the_terms_too(groups: GroupServiceStub, cases: dict[str, GroupCase]) -> None:
    ask(groups)
    cases["deal"] = replace(cases["deal"], people=opened(("a", "c", "b")).people)
    assert refusal(lambda: ask(groups)) == error.REASON_REQUEST_ID_REUSED


def test_predictions_with_a_digest_are_in_the_order_of_ids(
    groups: GroupServiceStub, cases: dict[str, GroupCase]
) -> None:
    ids = identified("id", [7, 3, 11, 0, 5, 2, 9, 1, 10, 4, 8, 6], {"income": list(range(PEOPLE))})
    known = opened()
    audited = np.arange(PEOPLE) != 4  # whom audits leave out is counted
    assert ask(groups).HasField("rows_compared") is False
    cases["deal"] = replace(known, case=replace(known.case, rows=FileRows(audited, ids)))
    by_file, by_id = ask(groups), ask(groups, DECISIONS[:, ids.order], request_id="ids", rows_digest=ids.digests[0])
    assert (by_file.rows_compared, by_id.rows_compared) == (False, True)
    totals = [from_message(each.release.tables[0].counts).sum(axis=1).tolist() for each in (by_file, by_id)]
    assert totals == [[9, 3]] * 2
    for changes in ({"rows_digest": ids.digests[1]}, {"rows_digest": b""}):
        refused = refusal(lambda c=changes: ask(groups, DECISIONS[:, ids.order], request_id="ids", **c))  # type: ignore[misc]
        assert refused == error.REASON_REQUEST_ID_REUSED
    for digest in (bytes(32), ids.digests[0][:-1], b"\0"):
        assert refusal(lambda d=digest: ask(groups, request_id="x", rows_digest=d)) == error.REASON_ROWS_DIFFER  # type: ignore[misc]
    cases["deal"] = opened()
    assert refusal(lambda: ask(groups, request_id="x", rows_digest=ids.digests[0])) == error.REASON_ROWS_DIFFER


REFUSED: tuple[tuple[dict[str, Any], error.Reason], ...] = (
    ({"deal_id": "another"}, error.REASON_DEAL_UNKNOWN),
    ({"request_id": ""}, error.REASON_REQUEST_ID_INVALID),
    ({"measures": []}, error.REASON_REQUEST_MALFORMED),
    ({"measures": [SELECTION, SELECTION]}, error.REASON_REQUEST_MALFORMED),
    ({"measures": [0]}, error.REASON_METRIC_UNKNOWN),
    ({"measures": [99]}, error.REASON_METRIC_UNKNOWN),
    ({"measures": [SELECTION, FALSE_POSITIVES]}, error.REASON_METRIC_NOT_ALLOWED),
    ({"measures": [wire.MEASURE_ACCURACY]}, error.REASON_METRIC_NOT_ALLOWED),
    ({"by": []}, error.REASON_REQUEST_MALFORMED),
    ({"by": ["kind", "kind"]}, error.REASON_REQUEST_MALFORMED),
    ({"by": ["income"]}, error.REASON_REQUEST_MALFORMED),
    ({"epsilon": EPSILON_MIN / 2}, error.REASON_EPSILON_INVALID),
    ({"epsilon": float("nan")}, error.REASON_EPSILON_INVALID),
    ({"epsilon": 2.1}, error.REASON_BUDGET_EXHAUSTED),
    ({"given": DECISIONS[:, 1:]}, error.REASON_PREDICTIONS_SHAPE),
    ({"given": np.tile(DECISIONS, (3, 1))}, error.REASON_QUERIES_OUT_OF_RANGE),
    ({"given": DECISIONS / 2}, error.REASON_PREDICTIONS_NOT_BINARY),
    ({"given": DECISIONS * 2}, error.REASON_PREDICTIONS_OUT_OF_RANGE),
    ({"given": DECISIONS * np.nan}, error.REASON_PREDICTIONS_NOT_FINITE),
)


def test_what_cannot_be_asked_is_refused_and_not_charged(groups: GroupServiceStub, cases: dict[str, GroupCase]) -> None:
    for changes, reason in REFUSED:
        asked = {"given": DECISIONS, **changes}
        given = asked.pop("given")
        assert refusal(lambda given=given, asked=asked: ask(groups, given, **asked)) == reason, changes  # type: ignore[misc]
        assert cases["deal"].case.ledger.remaining("deal", DEVELOPER) == 2.0, changes
