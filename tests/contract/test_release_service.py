"""ReleaseService over mTLS: a release is drawn and charged once, and no model but a sound one is taken, once."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import AuditCase, game_case
from compliance.answers.releases import (
    AttributeRelease,
    HandedModel,
    ReleaseCase,
    ReleaseService,
    SanitisedColumn,
    game_release,
)
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget
from compliance.ledger.entries import LedgerEntry, LedgerError
from compliance.ledger.store import LedgerUnavailable
from compliance.mechanisms import MECHANISMS
from compliance.records.people import Records
from fairwall.client.gaps import Audits, ask_models
from fairwall.compliance.v1 import release_service_pb2 as wire
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.compliance.v1.release_service_pb2_grpc import (
    ReleaseServiceStub,
    add_ReleaseServiceServicer_to_server,
)
from fairwall.laws.local import CLEAN, LOCAL_LAWS
from fairwall.laws.metrics.utility import UTILITIES
from fairwall.learning.forest import MOST_NODES, from_array
from fairwall.rpc.arrays import ArrivingArray, chunks_of, header_of
from fairwall.rpc.errors import audit_error_of, reason_of
from fairwall.wire.v1 import error_pb2 as error
from fairwall.wire.v1.array_pb2 import ELEMENT_TYPE_FLOAT64, ArrayHeader
from tests.contract.refused import refusal

PROTECTED = np.array([1, 0, 1, 1, 0, 0, 1, 0], np.uint8)
LABELS = np.array([1, 1, 1, 0, 0, 1, 1, 0], np.uint8)
FEATURES = np.array([0, 1, 2, 0, 1, 2, 0, 1])[:, None]
SENSITIVE = np.column_stack([PROTECTED, np.array([0, 1, 2, 3, 0, 1, 2, 3], np.uint8)])
COLUMNS = (SanitisedColumn(place=0, domain=2, share=0.5), SanitisedColumn(place=2, domain=4, share=0.5))
SIZES = (3,)
TO_TRAIN_ON = np.random.default_rng(1).integers(0, [2, 4], (500, 2)).astype(np.uint8)
BUDGET = 2.0
OF_ANY_DOMAIN = [name for name, law in LOCAL_LAWS.items() if law.domain is None]

SEEING, BLIND = 2 + 3 + 4, 3
"""How many features a model has that sees the sensitive columns, and one that does not."""


@dataclass(frozen=True)
class Served:
    """The developer's stubs of one compliance, and what it holds."""

    releases: ReleaseServiceStub
    audits: Audits
    cases: dict[str, ReleaseCase]
    audited: dict[str, AuditCase]

    def open(
        self, protocol: str = "grr", budget: float = BUDGET, *, seeded: bool = False, mechanism: str = "exact"
    ) -> None:
        """Open the deal anew."""
        release = game_release("deal", protocol, COLUMNS, TO_TRAIN_ON, budget, b"s" * 32 if seeded else None)
        model = HandedModel(LABELS, FEATURES, SENSITIVE, COLUMNS, SIZES)
        self.cases["deal"] = ReleaseCase(release, model, tells_utilities=mechanism == "exact")
        records = Records(LABELS, PROTECTED, ("sp", "eo"))
        paid = Budget(math.inf if mechanism == "exact" else 4.0)
        self.audited["deal"] = game_case("deal", records, MECHANISMS[mechanism], paid, 0.0, 1, b"s" * 32, models=model)

    @property
    def charges(self) -> list[tuple[str, float]]:
        """What was charged, by request id."""
        entries = self.cases["deal"].release.ledger.entries("deal")
        return [(entry.request.request_id, entry.request.loss.epsilon) for entry in entries]


@pytest.fixture
def served(serve: Any, dial: Any, credentials: Any) -> Served:
    cases: dict[str, ReleaseCase] = {}
    audited: dict[str, AuditCase] = {}

    def register(server: Any) -> None:
        add_ReleaseServiceServicer_to_server(ReleaseService(cases), server)
        add_AuditServiceServicer_to_server(AuditService(audited), server)

    connection = dial(serve(register, credentials["compliance"]), "compliance", credentials["developer"])
    opened = Served(ReleaseServiceStub(connection), Audits(connection), cases, audited)
    opened.open()
    return opened


def sanitise(served: Served, request_id: str = "r", epsilon: float = 1.0, deal_id: str = "deal") -> list[bytes]:
    """Ask for a release; every message of the answer, as it came."""
    request = wire.SanitiseRequest(request_id=request_id, deal_id=deal_id, epsilon=epsilon)
    return [part.SerializeToString() for part in served.releases.Sanitise(request, timeout=300)]


def encoded(answer: list[bytes]) -> NDArray[Any]:
    header, *parts = map(wire.SanitiseResponse.FromString, answer)
    arriving = ArrivingArray(header.header.encoded)
    for part in parts:
        arriving.append(part.encoded_chunk)
    return arriving.finish()


# Releases.


def check_one_draw_a_request(served: Served) -> None:
    """The same request again gets the same bytes and costs nothing."""
    first, again = sanitise(served), sanitise(served)
    assert again == first, "drawn a second time"
    assert served.charges == [("r", 1.0)]


@pytest.mark.parametrize("seeded", [True, False])
def test_the_same_request_again_is_drawn_and_charged_once(served: Served, seeded: bool) -> None:
    for protocol in OF_ANY_DOMAIN:
        served.open(protocol, seeded=seeded)
        check_one_draw_a_request(served)


def test_a_service_that_draws_again_on_a_repeat_is_caught(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    def again(release: AttributeRelease, entry: LedgerEntry) -> NDArray[Any]:
        return release.sanitised(entry.request.request_id, entry.request.loss.epsilon)

    monkeypatch.setattr(AttributeRelease, "encoded", again)
    with pytest.raises(AssertionError, match="drawn a second time"):
        check_one_draw_a_request(served)


def test_many_who_send_the_same_request_at_once_get_one_draw(served: Served) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: sanitise(served), range(8)))
    assert all(answer == answers[0] for answer in answers)
    assert served.charges == [("r", 1.0)]


@pytest.mark.parametrize("protocol", [*OF_ANY_DOMAIN, CLEAN])
def test_a_release_has_the_terms_shape(served: Served, protocol: str) -> None:
    served.open(protocol, math.inf if protocol == CLEAN else BUDGET)
    epsilon = math.inf if protocol == CLEAN else 1.5
    answer = sanitise(served, epsilon=epsilon)
    header = wire.SanitiseResponse.FromString(answer[0]).header
    assert header.epsilons == [epsilon / 2] * 2
    assert (header.epsilon_charged, header.epsilon_remaining) == (epsilon, math.inf if protocol == CLEAN else 0.5)
    released = encoded(answer)
    assert released.shape == (500, 6)
    assert released.dtype == (np.float64 if protocol == "the-server" else np.uint8)
    if protocol == CLEAN:
        one_hot = [np.eye(column.domain)[values] for column, values in zip(COLUMNS, TO_TRAIN_ON.T, strict=True)]
        assert np.array_equal(released, np.hstack(one_hot))


def test_another_request_costs_again_until_the_budget_is_spent(served: Served) -> None:
    first, second = sanitise(served, "a", 1.25), sanitise(served, "b", 0.75)
    assert encoded(first).tobytes() != encoded(second).tobytes()
    charged = [("a", 1.25), ("b", 0.75)]
    assert served.charges == charged
    assert refusal(lambda: sanitise(served, "c", 1e-6)) == error.REASON_BUDGET_EXHAUSTED
    assert served.charges == charged
    assert sanitise(served, "a", 1.25) == first, "what is bought stays bought"


def test_more_than_the_budget_is_refused_and_nothing_charged(served: Served) -> None:
    assert refusal(lambda: sanitise(served, epsilon=np.nextafter(BUDGET, 3))) == error.REASON_BUDGET_EXHAUSTED
    assert served.charges == []
    sanitise(served, epsilon=BUDGET)


def test_an_id_is_good_for_one_request(served: Served) -> None:
    first = sanitise(served)
    assert refusal(lambda: sanitise(served, epsilon=0.5)) == error.REASON_REQUEST_ID_REUSED
    assert served.charges == [("r", 1.0)]
    assert sanitise(served) == first


REFUSED: dict[str, tuple[dict[str, Any], error.Reason]] = {
    "an unknown deal": ({"deal_id": "other"}, error.REASON_DEAL_UNKNOWN),
    "no deal": ({"deal_id": ""}, error.REASON_DEAL_UNKNOWN),
    "an empty request id": ({"request_id": ""}, error.REASON_REQUEST_ID_INVALID),
    "a long request id": ({"request_id": "r" * 65}, error.REASON_REQUEST_ID_INVALID),
    "epsilon 0": ({"epsilon": 0.0}, error.REASON_EPSILON_INVALID),
    "epsilon below 0": ({"epsilon": -1.0}, error.REASON_EPSILON_INVALID),
    "too small an epsilon": ({"epsilon": 9e-13}, error.REASON_EPSILON_INVALID),
    "epsilon NaN": ({"epsilon": math.nan}, error.REASON_EPSILON_INVALID),
    "epsilon below all numbers": ({"epsilon": -math.inf}, error.REASON_EPSILON_INVALID),
    "an infinite epsilon": ({"epsilon": math.inf}, error.REASON_BUDGET_EXHAUSTED),
}


def test_a_request_that_cannot_be_is_refused_and_nothing_charged(served: Served) -> None:
    for what, (changes, reason) in REFUSED.items():
        assert refusal(lambda changes=changes: sanitise(served, **changes)) == reason, what  # type: ignore[misc]
        assert served.charges == [], what


def test_an_epsilon_beyond_the_protocols_limit_is_refused_and_nothing_charged(served: Served) -> None:
    for protocol in OF_ANY_DOMAIN:
        served.open(protocol, math.inf)
        for epsilon in (1401.0, math.inf):
            beyond = lambda epsilon=epsilon: sanitise(served, epsilon=epsilon)  # noqa: E731
            assert refusal(beyond) == error.REASON_EPSILON_INVALID, protocol
        assert served.charges == []
        sanitise(served, epsilon=1400.0)


def test_a_deal_that_releases_nothing_refuses(served: Served) -> None:
    for control in ("dropped", "constant"):
        served.open(control, math.inf)
        assert refusal(lambda: sanitise(served)) == error.REASON_MECHANISM_REFUSES
        assert refusal(lambda: sanitise(served, epsilon=math.inf)) == error.REASON_MECHANISM_REFUSES
        assert served.charges == []


def test_the_terms_tell_what_may_be_bought_and_what_is_left(served: Served) -> None:
    def told() -> wire.GetReleaseTermsResponse:
        return served.releases.GetReleaseTerms(wire.GetReleaseTermsRequest(deal_id="deal"), timeout=300)

    terms = told()
    assert (terms.people, terms.protocol, terms.epsilon, terms.epsilon_remaining) == (500, "grr", BUDGET, BUDGET)
    assert [(column.domain, column.share, list(column.values)) for column in terms.columns] == [
        (2, 0.5, []),
        (4, 0.5, []),
    ]
    sanitise(served)
    assert told().epsilon_remaining == BUDGET - 1
    asked = wire.GetReleaseTermsRequest(deal_id="other")
    assert refusal(lambda: served.releases.GetReleaseTerms(asked, timeout=300)) == error.REASON_DEAL_UNKNOWN


@pytest.mark.parametrize("why", [LedgerUnavailable("the disk is full"), LedgerError("it is an old copy")])
def test_a_ledger_that_cannot_be_written_or_must_not_be_releases_nothing(
    served: Served, monkeypatch: pytest.MonkeyPatch, why: Exception
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise why

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "settle", refuse)
        assert refusal(lambda: sanitise(served)) == error.REASON_LEDGER_UNAVAILABLE
    sanitise(served)
    assert served.charges == [("r", 1.0)]


def test_a_refusal_for_want_of_budget_tells_the_numbers(served: Served) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        sanitise(served, epsilon=2.5)
    told = audit_error_of(caught.value)
    assert (told.epsilon_remaining, told.epsilon_needed) == (BUDGET, 2.5)


def test_a_release_without_a_model_takes_none(served: Served) -> None:
    release = served.cases["deal"].release
    served.cases["deal"] = release  # type: ignore[assignment]
    assert refusal(lambda: hand(served, stump())) == error.REASON_NO_FEATURES
    sanitise(served)


# Models.


def stump(feature: float = 0, threshold: float = 0.5, low: float = -1, high: float = 1) -> NDArray[np.float64]:
    """Return a tree of one test."""
    return np.array([[feature, threshold, 1, 2], [-1, low, -1, -1], [-1, high, -1, -1]])


def hand(served: Served, nodes: NDArray[Any], *, sees_attributes: bool = True, deal_id: str = "deal") -> list[float]:
    """Hand a model over; the utilities that are told."""
    header = wire.ModelHeader(deal_id=deal_id, sees_attributes=sees_attributes, nodes=header_of(nodes))
    return send(served, wire.HandModelRequest(header=header), *map(chunk, chunks_of(nodes)))


def chunk(data: bytes) -> wire.HandModelRequest:
    return wire.HandModelRequest(nodes_chunk=data)


def send(served: Served, *parts: wire.HandModelRequest) -> list[float]:
    def sent() -> Iterator[wire.HandModelRequest]:
        yield from parts

    return list(served.releases.HandModel(sent(), timeout=300).utilities)


def gap(served: Served, request_id: str = "g", epsilon: float = math.inf) -> float:
    return float(ask_models(served.audits, "deal", request_id, "sp", 1, epsilon).gaps[0])


def test_a_model_is_measured_on_the_test_rows_as_they_are(served: Served) -> None:
    # The first feature is 1 for the disadvantaged: the model decides for them.
    utilities = hand(served, stump())
    decided = 1 - PROTECTED
    expected = [one.measure(LABELS, decided, decided.astype(np.float64)) for one in UTILITIES.values()]
    assert utilities == expected
    assert gap(served) == -1.0


def test_a_model_that_sees_no_attributes_has_the_other_columns_alone(served: Served) -> None:
    hand(served, stump(feature=2), sees_attributes=False)
    decided = FEATURES[:, 0] == 2
    assert gap(served) == pytest.approx(decided[PROTECTED == 1].mean() - decided[PROTECTED == 0].mean())


def test_the_same_model_again_changes_nothing_and_another_one_is_out_of_turn(served: Served) -> None:
    utilities = hand(served, stump())
    assert hand(served, stump()) == utilities
    assert refusal(lambda: hand(served, stump(low=1, high=-1))) == error.REASON_OUT_OF_TURN
    assert refusal(lambda: hand(served, stump(), sees_attributes=False)) == error.REASON_OUT_OF_TURN
    assert refusal(lambda: hand(served, stump().reshape(-1))) == error.REASON_OUT_OF_TURN
    assert refusal(lambda: hand(served, np.full((1, 4), math.nan))) == error.REASON_OUT_OF_TURN
    assert gap(served) == -1.0


def test_of_two_models_that_are_handed_over_at_once_one_is_taken(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Event()
    arrived: list[int] = []

    def read_together(nodes: NDArray[Any], features: int) -> Any:
        """Wait a moment for the other one, which must not get here."""
        arrived.append(len(nodes))
        if len(arrived) == 2:
            both.set()
        both.wait(0.2)
        return from_array(nodes, features)

    monkeypatch.setattr("compliance.answers.releases.from_array", read_together)

    def is_taken(nodes: NDArray[Any]) -> bool:
        try:
            return bool(hand(served, nodes))
        except grpc.RpcError as refused:
            return reason_of(refused) != error.REASON_OUT_OF_TURN

    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(is_taken, [stump(), stump(low=1, high=-1)])) == [False, True]


def changed(row: int, place: int, value: float) -> NDArray[np.float64]:
    nodes = stump()
    nodes[row, place] = value
    return nodes


DEEPER = np.array([[0, 0.5, 1, 2], [1, 0.5, 3, 4], [-1, 1, -1, -1], [-1, 1, -1, -1], [-1, 1, -1, -1]], np.float64)


def linked(row: int, place: int, node: float) -> NDArray[np.float64]:
    nodes = DEEPER.copy()
    nodes[row, place] = node
    return nodes


HOSTILE: dict[str, NDArray[Any]] = {
    "a node that is its own child": linked(1, 2, 1),
    "a cycle": linked(1, 2, 0),
    "a child of two": linked(1, 2, 2),
    "a child beyond the end": linked(1, 3, 5),
    "a child far beyond the end": linked(1, 3, 1e300),
    "half a child": linked(1, 3, 4.5),
    "no child": linked(1, 3, -1),
    "a leaf with a child": linked(2, 2, 3),
    "a tree inside another": np.vstack([stump()[0], stump()[1], stump()[1], [[0, 0, 1, 2]]]),
    "a feature too many": changed(0, 0, SEEING),
    "a feature of 2**53": changed(0, 0, 2.0**53),
    "a feature below 0": changed(0, 0, -2),
    "half a feature": changed(0, 0, 0.5),
    "a threshold NaN": changed(0, 1, math.nan),
    "an infinite threshold": changed(0, 1, math.inf),
    "a leaf NaN": changed(1, 1, math.nan),
    "an infinite leaf": changed(2, 1, -math.inf),
    "leaves that add up to more than a number": np.tile([[-1.0, 1.7e308, -1, -1]], (2, 1)),
    "no node": np.empty((0, 4)),
    "three numbers a node": stump()[:, :3],
    "five numbers a node": np.hstack([stump(), stump()[:, :1]]),
    "one axis": stump().reshape(-1),
    "single precision": stump().astype(np.float32),
    "bits": stump().astype(np.uint8),
}


def test_a_hostile_model_is_refused_and_a_sound_one_taken_then(served: Served) -> None:
    for what, nodes in HOSTILE.items():
        served.open(mechanism="exact")
        assert refusal(lambda nodes=nodes: hand(served, nodes)) == error.REASON_REQUEST_MALFORMED, what  # type: ignore[misc]
        assert refusal(lambda: gap(served)) == error.REASON_MODEL_UNAVAILABLE, what
        assert hand(served, stump()), what
        assert gap(served) == -1.0, what


def test_a_model_that_sees_no_attributes_cannot_test_them(served: Served) -> None:
    beyond = stump(feature=BLIND)
    assert refusal(lambda: hand(served, beyond, sees_attributes=False)) == error.REASON_REQUEST_MALFORMED
    assert hand(served, beyond)


def test_too_many_nodes_are_refused(served: Served) -> None:
    leaf = np.array([[-1.0, 0.0, -1.0, -1.0]])
    assert refusal(lambda: hand(served, np.tile(leaf, (MOST_NODES + 1, 1)))) == error.REASON_REQUEST_MALFORMED
    assert hand(served, np.tile(leaf, (1000, 1)))


def header(shape: tuple[int, ...] = (3, 4), kind: int = ELEMENT_TYPE_FLOAT64) -> wire.HandModelRequest:
    nodes = ArrayHeader(element_type=kind, shape=shape)  # type: ignore[arg-type]
    return wire.HandModelRequest(header=wire.ModelHeader(deal_id="deal", sees_attributes=True, nodes=nodes))


BYTES = stump().tobytes()
OUT_OF_ORDER: dict[str, tuple[wire.HandModelRequest, ...]] = {
    "nothing": (),
    "an empty message": (wire.HandModelRequest(),),
    "a chunk alone": (chunk(BYTES),),
    "a chunk before the header": (chunk(BYTES), header()),
    "a header alone": (header(),),
    "two headers": (header(), header(), chunk(BYTES)),
    "a header in between": (header(), chunk(BYTES[:48]), header(), chunk(BYTES[48:])),
    "an empty message in between": (header(), wire.HandModelRequest(), chunk(BYTES)),
    "a byte too few": (header(), chunk(BYTES[:-1])),
    "a byte too many": (header(), chunk(BYTES + b"0")),
    "a chunk too many": (header(), chunk(BYTES), chunk(BYTES)),
    "an unknown type": (header(kind=99), chunk(BYTES)),
    "no type": (header(kind=0), chunk(BYTES)),
    "more than there is room for": (header((2**40, 4)), chunk(BYTES)),
    "more than a number holds": (header((2**40, 2**40)), chunk(BYTES)),
}


def test_parts_that_are_no_model_are_refused(served: Served) -> None:
    for what, parts in OUT_OF_ORDER.items():
        assert refusal(lambda parts=parts: send(served, *parts)) == error.REASON_REQUEST_MALFORMED, what  # type: ignore[misc]
    assert hand(served, stump())


def test_a_model_of_an_unknown_deal_is_refused(served: Served) -> None:
    assert refusal(lambda: hand(served, stump(), deal_id="other")) == error.REASON_DEAL_UNKNOWN


def test_an_audit_before_a_model_is_handed_over_is_refused_and_nothing_charged(served: Served) -> None:
    assert refusal(lambda: gap(served)) == error.REASON_MODEL_UNAVAILABLE
    assert served.audited["deal"].ledger.entries("deal") == ()
    hand(served, stump())
    assert gap(served) == -1.0


def test_utilities_are_told_where_answers_are_exact_alone(served: Served) -> None:
    served.open(mechanism="laplace")
    assert hand(served, stump()) == []
    assert gap(served, epsilon=1.0) != -1.0
    assert len(served.cases["deal"].model.utilities) == len(UTILITIES)
    served.open(mechanism="exact")
    assert len(hand(served, stump())) == len(UTILITIES)


def test_calls_without_a_deadline_are_refused(served: Served) -> None:
    request = wire.SanitiseRequest(request_id="r", deal_id="deal", epsilon=1.0)
    assert refusal(lambda: list(served.releases.Sanitise(request))) == error.REASON_DEADLINE_MISSING
    assert served.charges == []


def test_nobody_but_the_developer_is_released_to(served: Served, serve: Any, dial: Any, credentials: Any) -> None:
    address = serve(
        lambda server: add_ReleaseServiceServicer_to_server(ReleaseService(served.cases), server),
        credentials["compliance"],
    )
    other = ReleaseServiceStub(dial(address, "compliance", credentials["adversary"]))
    request = wire.SanitiseRequest(request_id="r", deal_id="deal", epsilon=1.0)
    assert refusal(lambda: list(other.Sanitise(request, timeout=300))) == error.REASON_CALLER_NOT_ALLOWED
    assert served.charges == []
