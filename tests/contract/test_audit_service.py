"""AuditService over mTLS: right answers, refusals that cost nothing and tell nothing, and one answer a request."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import grpc
import numpy as np
import pytest
from grpc_health.v1.health_pb2 import HealthCheckRequest
from grpc_health.v1.health_pb2_grpc import HealthStub
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from compliance.answers import audit_service as service
from compliance.answers.audit_service import AuditService
from compliance.answers.audits import AuditCase, game_case
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.mechanisms.mechanism import BatchQuestion, MechanismAnswer
from compliance.records.people import Records
from fairwall.client.gaps import Audits, ask
from fairwall.compliance.v1.audit_service_pb2 import AuditHeader, AuditRequest, AuditResponse, GetTermsRequest
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.laws.choice.prediction import choose
from fairwall.laws.metrics.answer_precision import Precision, spacing, written_down
from fairwall.rpc.arrays import from_message, header_of
from fairwall.rpc.errors import CATALOGUE, Refusal, reason_of
from fairwall.rpc.server import CALLS_PER_CALLER
from fairwall.wire.numbers import from_message as from_precision
from fairwall.wire.v1 import error_pb2 as error
from fairwall.wire.v1.array_pb2 import ELEMENT_TYPE_FLOAT64, ELEMENT_TYPE_UNSPECIFIED, ArrayHeader
from fairwall.wire.v1.metric_pb2 import METRIC_ABS_EO, METRIC_SP, METRIC_UNSPECIFIED

Array = NDArray[Any]

LABELS = np.array([1, 1, 1, 0, 0, 1, 1, 0], np.uint8)
PROTECTED = np.array([1, 0, 1, 1, 0, 0, 1, 0], np.uint8)


def open_case(
    mechanism: str = "laplace",
    epsilon: float = 2.0,
    *,
    labels: Array = LABELS,
    protected: Array = PROTECTED,
    metrics: Sequence[str] = ("sp", "abs_sp", "eo", "abs_eo"),
    queries_max: int = 3,
    seed: bytes | None = b"s" * 32,
) -> AuditCase:
    records = Records(labels, protected, tuple(metrics))
    return game_case("deal", records, MECHANISMS[mechanism], Budget(epsilon), 0.0, queries_max, seed)


@pytest.fixture
def cases() -> dict[str, AuditCase]:
    return {}


@pytest.fixture
def channel(cases: dict[str, AuditCase], serve: Any, dial: Any, credentials: Any) -> grpc.Channel:
    """The developer's channel to a server that answers from ``cases``."""
    address = serve(
        lambda server: add_AuditServiceServicer_to_server(AuditService(cases), server), credentials["compliance"]
    )
    opened: grpc.Channel = dial(address, "compliance", credentials["developer"])
    return opened


@pytest.fixture
def audits(channel: grpc.Channel) -> Audits:
    return Audits(channel)


def remaining(audits: Audits, deal_id: str = "deal") -> float:
    return float(audits.GetTerms(GetTermsRequest(deal_id=deal_id), timeout=300).epsilon_remaining)


def header(**changes: Any) -> AuditRequest:
    """The header of a request that is in order for four people, but for the changes."""
    asked = {"request_id": "r", "deal_id": "deal", "metric": METRIC_SP, "epsilon": 1.0}
    shape = ArrayHeader(element_type=ELEMENT_TYPE_FLOAT64, shape=(1, 4))
    return AuditRequest(header=AuditHeader(**{**asked, "predictions": shape, **changes}))


def chunk(predictions: Any = (0.0, 0.25, 0.5, 1.0)) -> AuditRequest:
    return AuditRequest(predictions_chunk=np.asarray(predictions, "<f8").tobytes())


def shaped(*shape: int, kind: int = ELEMENT_TYPE_FLOAT64) -> AuditRequest:
    return header(predictions=ArrayHeader(element_type=kind, shape=shape))  # type: ignore[arg-type]


def send(audits: Audits, parts: Iterable[AuditRequest], seconds: float | None = 5) -> AuditResponse:
    response: AuditResponse = audits.Audit(iter(parts), timeout=seconds)
    return response


def refused(call: Callable[[], object]) -> tuple[Any, ...]:
    """Everything that a refused caller gets to see."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    seen = caught.value
    return reason_of(seen), seen.code(), seen.details(), tuple(seen.trailing_metadata())


def refusal(call: Callable[[], object]) -> error.Reason:
    """The reason of a refused call, after a look at the rest: fixed status, fixed sentence, nothing else."""
    reason, code, details, trailing = refused(call)
    assert reason != error.REASON_UNSPECIFIED, (code, details)
    assert (code, details) == CATALOGUE[reason]
    assert [key for key, _ in trailing] == ["fairwall-error-bin"]
    return reason


def test_an_answer_outside_its_own_interval_is_a_fault_of_ours_and_costs_nothing(
    cases: dict[str, AuditCase], audits: Audits, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases["deal"] = open_case(labels=LABELS[:4], protected=PROTECTED[:4])
    ends = np.array([0.1]), np.array([0.2])
    for told, likely in ((0.3, None), (0.15, (ends[0], ends[0])), (0.15, ends[::-1])):
        wrong = MechanismAnswer(np.array([told]), low=ends[0], high=ends[1], likely=likely)
        monkeypatch.setattr(type(MECHANISMS["laplace"]), "release", lambda *_, wrong=wrong: wrong)
        assert refusal(lambda: send(audits, [header(), chunk()])) == error.REASON_INTERNAL
        assert remaining(audits) == 2
    right = MechanismAnswer(np.array([0.15]), low=ends[0], high=ends[1])
    monkeypatch.setattr(type(MECHANISMS["laplace"]), "release", lambda *_: right)
    assert send(audits, [header(), chunk()]).epsilon_charged == 1


# Answers.


def by_hand(metric: str, predictions: Array, labels: Array, protected: Array) -> Array:
    inside = labels == 1 if metric.endswith("eo") else np.full(len(labels), True)
    advantaged, disadvantaged = inside & (protected == 1), inside & (protected == 0)
    gaps = predictions[:, advantaged].mean(axis=1) - predictions[:, disadvantaged].mean(axis=1)
    return np.abs(gaps) if metric.startswith("abs_") else gaps


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.uint8, np.bool_])
def test_an_exact_answer_is_the_gap_computed_by_hand(cases: dict[str, AuditCase], audits: Audits, kind: type) -> None:
    cases["deal"] = open_case("exact", math.inf)
    rng = np.random.default_rng(1)
    predictions = (rng.integers(0, 2, (3, 8)) if kind in (np.uint8, np.bool_) else rng.random((3, 8))).astype(kind)
    for metric in ("sp", "abs_sp", "eo", "abs_eo"):
        answer = ask(audits, "deal", metric, metric, predictions, math.inf)
        assert answer.gaps == pytest.approx(by_hand(metric, predictions.astype(float), LABELS, PROTECTED), abs=1e-15)
        assert (answer.epsilon_charged, answer.epsilon_remaining) == (math.inf, math.inf)


@given(st.lists(st.floats(), min_size=1, max_size=6))
@example([0.0, -0.0])
@example([-0.0, 1.0, -5e-324])
@example([-0.0, 1.0, math.nan])
@example([-math.nan])
@example([0.0, 1.0, 5e-324, 2.2e-308])
def test_predictions_are_numbers_in_0_to_1_whatever_else_is_among_them(numbers: list[float]) -> None:
    predictions = np.array([numbers])
    if all(0 <= number <= 1 for number in numbers):
        assert service._checked("sp", predictions) is predictions
        return
    with pytest.raises(Refusal) as caught:
        service._checked("sp", predictions)
    finite = all(map(math.isfinite, numbers))
    expected = error.REASON_PREDICTIONS_OUT_OF_RANGE if finite else error.REASON_PREDICTIONS_NOT_FINITE
    assert caught.value.reason == expected


def test_the_gap_is_advantaged_minus_disadvantaged(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = open_case("exact", math.inf)
    answer = ask(audits, "deal", "r", "sp", np.stack([PROTECTED, 1 - PROTECTED]), math.inf)
    assert answer.gaps.tolist() == [1.0, -1.0]


def test_predictions_of_several_chunks_arrive_in_order(cases: dict[str, AuditCase], audits: Audits) -> None:
    rng = np.random.default_rng(2)
    labels, protected = rng.integers(0, 2, (2, 1000)).astype(np.uint8)
    cases["deal"] = open_case("exact", math.inf, labels=labels, protected=protected, queries_max=300)
    predictions = rng.random((300, 1000))
    assert predictions.nbytes > 2 << 20
    answer = ask(audits, "deal", "r", "eo", predictions, math.inf)
    assert answer.gaps == pytest.approx(by_hand("eo", predictions, labels, protected), abs=1e-14)


def test_chunks_may_be_cut_anywhere(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = open_case("exact", math.inf, labels=np.ones(4, np.uint8), protected=PROTECTED[:4])
    whole = send(audits, [header(epsilon=math.inf), chunk()])
    data = chunk().predictions_chunk
    cut = [AuditRequest(predictions_chunk=piece) for piece in (b"", data[:3], data[3:17], b"", data[17:])]
    assert send(audits, [header(epsilon=math.inf, request_id="other"), *cut]).gaps == whole.gaps


def test_the_terms_are_the_policy_and_what_is_left(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = open_case("laplace", 2.0, metrics=("eo",), queries_max=7)
    ask(audits, "deal", "r", "eo", np.zeros((1, 8)), 0.5)
    terms = audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=300)
    assert (terms.people, terms.mechanism, terms.queries_max) == (8, "laplace", 7)
    assert list(terms.metrics) == [3]
    assert (terms.epsilon, terms.epsilon_remaining, terms.epsilon_max) == (2.0, 1.5, math.inf)
    cases["deal"] = replace(cases["deal"], epsilon_max=0.75)
    assert audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=300).epsilon_max == 0.75


def test_noise_is_added_at_the_price_that_was_offered(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = open_case("conceal", 2.0)
    answer = ask(audits, "deal", "r", "sp", np.zeros((3, 8)), 0.75)
    assert len(set(answer.gaps.tolist()) - {0.0}) == 3
    assert (answer.epsilon_charged, answer.epsilon_remaining) == (0.75, 1.25)


# What an account has bought.


def asked_of_recommended(audits: Audits, request_id: str, epsilon: float, models: int = 3) -> tuple[Any, ...]:
    predictions = np.random.default_rng(6).random((3, 8))[:models]
    answer = ask(audits, "deal", request_id, "sp", predictions, epsilon)
    return answer.gaps.tolist(), answer.epsilon_charged, answer.epsilon_remaining


@pytest.mark.parametrize("bought_before", [False, True])
def test_recommended_sells_noisy_attributes_once_and_answers_from_them_for_nothing(
    cases: dict[str, AuditCase], audits: Audits, bought_before: bool
) -> None:
    assert choose("sp", 8, 3, 8.0) == "randomized-response"
    assert choose("sp", 8, 3, 0.5) == choose("sp", 8, 1, 0.5) == "counts shrunk"
    cases["deal"] = open_case("recommended", 9.0, seed=None)
    left, counted = 9.0, None
    if bought_before:
        counted = asked_of_recommended(audits, "counted", 0.5)
        left = 8.5
        assert counted[1:] == (0.5, left)
        # Sizes are no noisy attributes: the next batch of this kind costs as much.
        left = 8.0
        assert asked_of_recommended(audits, "counted more", 0.5)[1:] == (0.5, left)
    first, *price = asked_of_recommended(audits, "response", 8.0)
    left -= 8.0
    assert price == [8.0, left]
    # Other epsilons that are no larger, and other sizes: all from what was bought.
    for number, epsilon in enumerate((8.0, 0.5, 1e-9)):
        assert asked_of_recommended(audits, f"free {number}", epsilon) == (first, 0.0, left)
        assert asked_of_recommended(audits, f"fewer {number}", epsilon, 1) == (first[:1], 0.0, left)
    # A larger one would buy another copy.
    larger = lambda: asked_of_recommended(audits, "larger", 8.5)  # noqa: E731
    assert refusal(larger) == error.REASON_BUDGET_EXHAUSTED
    if counted is not None:
        assert asked_of_recommended(audits, "counted", 0.5)[0] == counted[0]
    entries = cases["deal"].ledger.entries("deal")
    assert sum(entry.request.loss.epsilon for entry in entries) == 9.0 - left


# How sure an answer is.


@pytest.mark.parametrize("mechanism", ["laplace", "counts", "recommended", "exact"])
def test_an_answer_says_how_sure_it_is_and_says_it_again(
    cases: dict[str, AuditCase], audits: Audits, mechanism: str
) -> None:
    epsilon = math.inf if mechanism == "exact" else 0.5
    cases["deal"] = open_case(mechanism, epsilon, seed=None)
    predictions = np.random.default_rng(4).random((3, 8))
    first, again = (ask(audits, "deal", "r", "abs_sp", predictions, epsilon, threshold=0.1) for _ in range(2))
    assert first.probability_above is not None
    assert again.probability_above is not None
    assert [again.low.tobytes(), again.high.tobytes()] == [first.low.tobytes(), first.high.tobytes()]
    assert again.probability_above.tobytes() == first.probability_above.tobytes()
    assert ((first.low >= 0) & (first.low <= first.high) & (first.high <= 1)).all()
    assert ((first.probability_above > 0) & (first.probability_above < 1)).all()
    if mechanism == "exact":
        assert first.low.tobytes() == first.high.tobytes() == first.gaps.tobytes()


def test_a_mechanism_whose_noise_is_secret_gives_no_interval(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = open_case("conceal", 2.0)
    answer = ask(audits, "deal", "r", "sp", np.zeros((3, 8)), 1.0, threshold=0.0)
    assert answer.probability_above is not None
    assert np.isnan([answer.low, answer.high, answer.probability_above]).all()


@pytest.mark.check
@pytest.mark.few(1)
@pytest.mark.parametrize("mechanism", ["laplace", "counts", "cube", "cells"])
def test_a_bound_on_the_probability_to_be_above_is_wrong_as_seldom_as_it_says(
    cases: dict[str, AuditCase], audits: Audits, mechanism: str
) -> None:
    """At the gap itself, and just below it, for 300 data sets: more than 35 of 300 are wrong once in a million."""
    wrong = {"above": 0, "not above": 0}
    for draw in range(300):
        cases["deal"] = open_case(mechanism, 5.0, seed=None)
        predictions = np.random.default_rng(draw).random((1, 8))
        gap = float(BatchQuestion("sp", predictions, cases["deal"].records).gaps()[0])
        answer = ask(audits, "deal", str(draw), "sp", predictions, 3.0)
        (least, _), (_, most) = answer.bounds_above(gap), answer.bounds_above(gap - 1e-9)
        assert (least[0], most[0]) == (0.95 * (answer.low[0] > gap), 1 - 0.95 * (answer.high[0] < gap))
        wrong["above"] += bool(least[0])
        wrong["not above"] += most[0] < 1
    assert max(wrong.values()) <= (0 if mechanism == "cells" else 35)


def test_nothing_is_compared_unless_a_threshold_is_given(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = open_case("laplace", 2.0)
    assert ask(audits, "deal", "r", "sp", np.zeros((3, 8)), 1.0).probability_above is None
    # 0 is a threshold like any other.
    assert ask(audits, "deal", "s", "sp", np.zeros((3, 8)), 1.0, threshold=0.0).probability_above is not None


# Refusals. The deal has four people with label 1, the budget 2, at most 3 models, and no abs_eo.

REFUSED: dict[str, tuple[list[AuditRequest], error.Reason]] = {
    "a NaN": ([header(), chunk((0, math.nan, 0, 1))], error.REASON_PREDICTIONS_NOT_FINITE),
    "an infinity": ([header(), chunk((0, 0, 0, math.inf))], error.REASON_PREDICTIONS_NOT_FINITE),
    "a minus infinity": ([header(), chunk((-math.inf, 0, 0, 0))], error.REASON_PREDICTIONS_NOT_FINITE),
    "just above 1": ([header(), chunk((0, 0, 0, np.nextafter(1, 2)))], error.REASON_PREDICTIONS_OUT_OF_RANGE),
    "just below 0": ([header(), chunk((0, -5e-324, 0, 1))], error.REASON_PREDICTIONS_OUT_OF_RANGE),
    "too many columns": ([shaped(1, 5), chunk((0,) * 5)], error.REASON_PREDICTIONS_SHAPE),
    "too few columns": ([shaped(1, 3), chunk((0,) * 3)], error.REASON_PREDICTIONS_SHAPE),
    "one axis": ([shaped(4), chunk()], error.REASON_PREDICTIONS_SHAPE),
    "three axes": ([shaped(1, 1, 4), chunk()], error.REASON_PREDICTIONS_SHAPE),
    "people without end": ([shaped(1, 2**64 - 1), chunk()], error.REASON_PREDICTIONS_SHAPE),
    "no model": ([shaped(0, 4)], error.REASON_QUERIES_OUT_OF_RANGE),
    "too many models": ([shaped(4, 4), *[chunk()] * 4], error.REASON_QUERIES_OUT_OF_RANGE),
    "models without end": ([shaped(2**64 - 1, 4), chunk()], error.REASON_QUERIES_OUT_OF_RANGE),
    "too few bytes": ([shaped(2, 4), chunk()], error.REASON_REQUEST_MALFORMED),
    "half a number": ([header(), AuditRequest(predictions_chunk=b"1" * 28)], error.REASON_REQUEST_MALFORMED),
    "no chunk": ([header()], error.REASON_REQUEST_MALFORMED),
    "too many bytes": ([header(), chunk(), AuditRequest(predictions_chunk=b"1")], error.REASON_REQUEST_MALFORMED),
    "nothing at all": ([], error.REASON_REQUEST_MALFORMED),
    "the header twice": ([header(), header(), chunk()], error.REASON_REQUEST_MALFORMED),
    "a header at the end": ([header(), chunk(), header()], error.REASON_REQUEST_MALFORMED),
    "a chunk first": ([chunk(), header()], error.REASON_REQUEST_MALFORMED),
    "an empty part": ([header(), AuditRequest(), chunk()], error.REASON_REQUEST_MALFORMED),
    "no element type": ([shaped(1, 4, kind=ELEMENT_TYPE_UNSPECIFIED), chunk()], error.REASON_REQUEST_MALFORMED),
    "an unknown element type": ([shaped(1, 4, kind=99), chunk()], error.REASON_REQUEST_MALFORMED),
    "an unknown metric": ([header(metric=999), chunk()], error.REASON_METRIC_UNKNOWN),
    "no metric": ([header(metric=METRIC_UNSPECIFIED), chunk()], error.REASON_METRIC_UNKNOWN),
    "a metric not allowed": ([header(metric=METRIC_ABS_EO), chunk()], error.REASON_METRIC_NOT_ALLOWED),
    "epsilon 0": ([header(epsilon=0.0), chunk()], error.REASON_EPSILON_INVALID),
    "a negative epsilon": ([header(epsilon=-1.0), chunk()], error.REASON_EPSILON_INVALID),
    "epsilon minus infinity": ([header(epsilon=-math.inf), chunk()], error.REASON_EPSILON_INVALID),
    "epsilon NaN": ([header(epsilon=math.nan), chunk()], error.REASON_EPSILON_INVALID),
    "an epsilon too small for any noise": ([header(epsilon=5e-324), chunk()], error.REASON_EPSILON_INVALID),
    "a threshold NaN": ([header(threshold=math.nan), chunk()], error.REASON_REQUEST_MALFORMED),
    "an infinite epsilon": ([header(epsilon=math.inf), chunk()], error.REASON_BUDGET_EXHAUSTED),
    "more than the budget": ([header(epsilon=2.001), chunk()], error.REASON_BUDGET_EXHAUSTED),
    "an unknown deal": ([header(deal_id="other"), chunk()], error.REASON_DEAL_UNKNOWN),
    "an empty request id": ([header(request_id=""), chunk()], error.REASON_REQUEST_ID_INVALID),
    "a long request id": ([header(request_id="r" * 65), chunk()], error.REASON_REQUEST_ID_INVALID),
    "a foreign request id": ([header(request_id="ré"), chunk()], error.REASON_REQUEST_ID_INVALID),
    "an unprintable request id": ([header(request_id="r\n"), chunk()], error.REASON_REQUEST_ID_INVALID),
}  # fmt: skip


def four_people(mechanism: str, protected: Sequence[int] = (1, 0, 0, 1)) -> AuditCase:
    return open_case(
        mechanism,
        labels=np.ones(4, np.uint8),
        protected=np.array(protected, np.uint8),
        metrics=("sp", "abs_sp", "eo"),
    )


@pytest.mark.parametrize("mechanism", ["laplace", "conceal"])
def test_a_refused_batch_says_why_costs_nothing_and_hurts_nobody(
    cases: dict[str, AuditCase], audits: Audits, mechanism: str
) -> None:
    for what, (parts, reason) in REFUSED.items():
        cases["deal"] = four_people(mechanism)
        assert refusal(lambda parts=parts: send(audits, parts)) == reason, what  # type: ignore[misc]
        assert remaining(audits) == 2.0, what
        assert cases["deal"].ledger.entries("deal") == (), what
        assert send(audits, [header(), chunk()]).epsilon_remaining == 1.0, what


NUMBERS: dict[str, tuple[list[AuditRequest], dict[str, float]]] = {
    "too many columns": (REFUSED["too many columns"][0], {"people": 4}),
    "one axis": (REFUSED["one axis"][0], {"people": 4}),
    "too many models": (REFUSED["too many models"][0], {"queries_max": 3}),
    "no model": (REFUSED["no model"][0], {"queries_max": 3}),
    "epsilon 0": (REFUSED["epsilon 0"][0], {"epsilon_max": 5.0}),
    "more than a batch may spend": ([header(epsilon=5.5), chunk()], {"epsilon_max": 5.0}),
    "more than is left": ([header(epsilon=1.8), chunk()], {"epsilon_remaining": 1.7, "epsilon_needed": 1.8}),
    "a NaN": (REFUSED["a NaN"][0], {}),
    "an unknown deal": (REFUSED["an unknown deal"][0], {}),
}


def test_a_refusal_tells_the_number_that_was_broken_and_no_other(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = replace(four_people("laplace"), epsilon_max=5.0)
    send(audits, [header(epsilon=0.3, request_id="before"), chunk()])
    for what, (parts, numbers) in NUMBERS.items():
        reason, _, _, ((_, carried),) = refused(lambda parts=parts: send(audits, parts))  # type: ignore[misc]
        said = error.AuditError.FromString(carried)
        assert {field.name: value for field, value in said.ListFields()} == {"reason": reason, **numbers}, what


def test_a_batch_may_spend_the_least_and_the_most_and_nothing_beyond(
    cases: dict[str, AuditCase], audits: Audits
) -> None:
    cases["deal"] = replace(four_people("laplace"), epsilon_min=0.25, epsilon_max=0.5)
    for epsilon in (0.25, 0.5):
        assert send(audits, [header(epsilon=epsilon, request_id=f"r{epsilon}"), chunk()]).epsilon_charged == epsilon
    for epsilon in (np.nextafter(0.25, 0), np.nextafter(0.5, 1)):
        reason, _, _, ((_, carried),) = refused(
            lambda epsilon=epsilon: send(audits, [header(epsilon=epsilon), chunk()])
        )  # type: ignore[misc]
        assert error.AuditError.FromString(carried) == error.AuditError(
            reason=error.REASON_EPSILON_INVALID, epsilon_min=0.25, epsilon_max=0.5
        )
        assert reason == error.REASON_EPSILON_INVALID


@pytest.mark.parametrize("before", [[], [header().SerializeToString()]], ids=["first", "after the header"])
def test_bytes_that_are_no_message_are_malformed(
    cases: dict[str, AuditCase], audits: Audits, channel: grpc.Channel, before: list[bytes]
) -> None:
    cases["deal"] = four_people("laplace")
    unserialised = channel.stream_unary("/fairwall.compliance.v1.AuditService/Audit")
    parts = [*before, b"\xff\xff\xff"]
    assert refusal(lambda: unserialised(iter(parts), timeout=300)) == error.REASON_REQUEST_MALFORMED
    assert remaining(audits) == 2.0


@pytest.mark.parametrize("seconds", [None, 3700.0])
def test_a_call_needs_a_deadline_within_the_hour(
    cases: dict[str, AuditCase], audits: Audits, seconds: float | None
) -> None:
    cases["deal"] = four_people("laplace")
    assert refusal(lambda: send(audits, [header(), chunk()], seconds)) == error.REASON_DEADLINE_MISSING
    assert (
        refusal(lambda: audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=seconds))
        == error.REASON_DEADLINE_MISSING
    )
    assert remaining(audits) == 2.0


def test_the_terms_of_an_unknown_deal_are_refused(audits: Audits) -> None:
    call = lambda: audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=300)  # noqa: E731
    assert refusal(call) == error.REASON_DEAL_UNKNOWN


@pytest.mark.parametrize("mechanism", ["exact", "laplace", "conceal"])
def test_an_exact_or_unlimited_answer_does_not_fit_a_finite_budget(
    cases: dict[str, AuditCase], audits: Audits, mechanism: str
) -> None:
    cases["deal"] = four_people(mechanism)
    assert refusal(lambda: send(audits, [header(epsilon=math.inf), chunk()])) == error.REASON_BUDGET_EXHAUSTED
    assert remaining(audits) == 2.0


def test_two_batches_cannot_spend_more_than_the_budget_together(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = four_people("laplace")
    send(audits, [header(epsilon=1.5), chunk()])
    late = [header(epsilon=0.51, request_id="late"), chunk()]
    assert refusal(lambda: send(audits, late)) == error.REASON_BUDGET_EXHAUSTED
    assert remaining(audits) == 0.5
    assert send(audits, [header(epsilon=0.5, request_id="late"), chunk()]).epsilon_remaining == 0.0


def test_twenty_tenths_use_up_a_budget_of_2_and_not_a_trillionth_fits_after_them(
    cases: dict[str, AuditCase], audits: Audits
) -> None:
    cases["deal"] = four_people("laplace")
    for number in range(20):
        answer = send(audits, [header(epsilon=0.1, request_id=f"r{number}"), chunk()])
    assert (answer.epsilon_remaining, remaining(audits)) == (0.0, 0.0)
    crumb = [header(epsilon=1e-12, request_id="crumb"), chunk()]
    assert refusal(lambda: send(audits, crumb)) == error.REASON_BUDGET_EXHAUSTED


def test_the_largest_charges_leave_an_unlimited_budget_unlimited(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = open_case(epsilon=math.inf, labels=np.ones(4, np.uint8), protected=PROTECTED[:4])
    for request_id in "abc":
        assert send(audits, [header(epsilon=1.7e308, request_id=request_id), chunk()]).epsilon_remaining == math.inf


@pytest.mark.parametrize("mechanism", ["laplace", "conceal"])
@pytest.mark.parametrize("worlds", [3, pytest.param(14, marks=pytest.mark.check)])
def test_a_refusal_is_the_same_whoever_the_people_are(
    cases: dict[str, AuditCase], audits: Audits, mechanism: str, worlds: int
) -> None:
    every = [world for world in itertools.product((0, 1), repeat=4) if 0 < sum(world) < 4]
    assert len(every) == 14
    for what, (parts, _) in REFUSED.items():
        seen = set()
        for world in every[:: 14 // worlds]:
            cases["deal"] = four_people(mechanism, world)
            seen.add(refused(lambda parts=parts: send(audits, parts)))  # type: ignore[misc]
        assert len(seen) == 1, what


# One answer a request.


@pytest.mark.parametrize(("mechanism", "seed"), [("laplace", None), ("conceal", b"s" * 32)])
def test_the_same_request_again_gets_the_stored_answer_even_when_the_budget_is_used_up(
    cases: dict[str, AuditCase], audits: Audits, mechanism: str, seed: bytes | None
) -> None:
    cases["deal"] = open_case(mechanism, seed=seed)
    predictions = np.random.default_rng(3).random((3, 8))
    first = ask(audits, "deal", "r", "sp", predictions, 2.0)
    again = ask(audits, "deal", "r", "sp", predictions, 2.0)
    assert again.gaps.tobytes() == first.gaps.tobytes()
    assert (again.epsilon_charged, again.epsilon_remaining) == (2.0, 0.0)
    assert remaining(audits) == 0.0
    assert len(cases["deal"].ledger.entries("deal")) == 1


def test_a_repeat_says_what_is_left_now_and_is_the_stored_answer_else(
    cases: dict[str, AuditCase], audits: Audits
) -> None:
    cases["deal"] = four_people("laplace")
    first = send(audits, [header(epsilon=0.5), chunk()])
    assert (first.epsilon_remaining, first.HasField("epsilon_remaining_now")) == (1.5, False)
    assert send(audits, [header(epsilon=0.5), chunk()]) == first
    send(audits, [header(epsilon=0.75, request_id="other"), chunk()])
    again = send(audits, [header(epsilon=0.5), chunk()])
    assert (again.epsilon_remaining, again.epsilon_remaining_now) == (1.5, 0.75)
    again.ClearField("epsilon_remaining_now")
    assert again.SerializeToString(deterministic=True) == first.SerializeToString(deterministic=True)
    said = ask(audits, "deal", "r", "sp", np.frombuffer(chunk().predictions_chunk).reshape(1, 4), 0.5)
    assert (said.epsilon_remaining, said.epsilon_remaining_now) == (1.5, 0.75)


@pytest.mark.parametrize(
    "other",
    [
        [header(), chunk((0.0, 0.25, 0.5, np.nextafter(1, 0)))],
        [header(metric=2), chunk()],
        [header(epsilon=0.5), chunk()],
        [header(threshold=0.0), chunk()],
        [shaped(2, 4), chunk(), chunk()],
    ],
    ids=["predictions", "metric", "epsilon", "threshold", "models"],
)
def test_a_request_id_is_good_for_one_request(
    cases: dict[str, AuditCase], audits: Audits, other: list[AuditRequest]
) -> None:
    cases["deal"] = four_people("laplace")
    first = send(audits, [header(), chunk()])
    assert refusal(lambda: send(audits, other)) == error.REASON_REQUEST_ID_REUSED
    assert remaining(audits) == 1.0
    assert send(audits, [header(), chunk()]) == first


def test_a_refused_request_does_not_use_up_its_id(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = four_people("laplace")
    assert refusal(lambda: send(audits, [header(epsilon=9.0), chunk()])) == error.REASON_BUDGET_EXHAUSTED
    assert send(audits, [header(), chunk()]).epsilon_charged == 1.0


def test_the_same_id_in_another_deal_is_another_request(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases.update(deal=four_people("laplace"), other=four_people("laplace"))
    send(audits, [header(), chunk()])
    send(audits, [header(deal_id="other", epsilon=0.5), chunk()])
    assert (remaining(audits), remaining(audits, "other")) == (1.0, 1.5)


@pytest.mark.parametrize("seed", [b"s" * 32, None])
def test_another_request_id_gets_other_noise(cases: dict[str, AuditCase], audits: Audits, seed: bytes | None) -> None:
    cases["deal"] = open_case(seed=seed)
    answers = [ask(audits, "deal", request_id, "sp", np.zeros((3, 8)), 1.0) for request_id in "ab"]
    assert not set(answers[0].gaps.tolist()) & set(answers[1].gaps.tolist())


def test_seeded_noise_does_not_depend_on_the_order_of_requests(cases: dict[str, AuditCase], audits: Audits) -> None:
    gaps = []
    for order in ("ab", "ba"):
        cases["deal"] = four_people("conceal")
        gaps.append({name: send(audits, [header(request_id=name), chunk()]).gaps.data for name in order})
    assert gaps[0] == gaps[1]


def together(calls: Sequence[Callable[[], Any]]) -> list[Any]:
    """Make calls at the same moment; what each returned, or the reason why not."""
    gate = threading.Barrier(len(calls), timeout=300)

    def one(call: Callable[[], Any]) -> Any:
        gate.wait()
        try:
            return call()
        except grpc.RpcError as failed:
            return reason_of(failed)

    with ThreadPoolExecutor(len(calls)) as threads:
        return list(threads.map(one, calls))


def test_callers_at_the_same_time_cannot_overspend(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = four_people("laplace")
    calls = [
        lambda name=str(number): send(audits, [header(request_id=name, epsilon=0.3), chunk()]) for number in range(8)
    ]
    results = together(calls)
    assert results.count(error.REASON_BUDGET_EXHAUSTED) == 2
    assert sum(entry.request.loss.epsilon for entry in cases["deal"].ledger.entries("deal")) == pytest.approx(1.8)
    assert sorted(answer.epsilon_remaining for answer in results if isinstance(answer, AuditResponse)) == pytest.approx(
        [0.2, 0.5, 0.8, 1.1, 1.4, 1.7]
    )


def test_one_request_sent_many_times_at_once_is_charged_once(cases: dict[str, AuditCase], audits: Audits) -> None:
    cases["deal"] = open_case("laplace", seed=None, labels=np.ones(4, np.uint8), protected=PROTECTED[:4])
    answers = together([lambda: send(audits, [header(), chunk()])] * 8)
    assert {from_message(answer.gaps).tobytes() for answer in answers} == {from_message(answers[0].gaps).tobytes()}
    assert remaining(audits) == 1.0


def test_a_caller_has_room_for_so_many_calls_and_no_more(
    cases: dict[str, AuditCase], audits: Audits, channel: grpc.Channel
) -> None:
    cases["deal"] = four_people("laplace")
    hold = threading.Event()

    def idle() -> Iterable[AuditRequest]:
        yield header(request_id="held")
        hold.wait(300)

    calls = [audits.Audit.future(idle(), timeout=300) for _ in range(2 * CALLS_PER_CALLER)]
    health = HealthStub(channel)
    try:
        while sum(call.done() for call in calls) < CALLS_PER_CALLER:
            time.sleep(0.01)
        refused = {call for call in calls if call.done()}  # those that are not have all the room
        assert {refusal(call.result) for call in refused} == {error.REASON_TOO_MANY_CALLS}
        assert refusal(lambda: remaining(audits, "no deal")) == error.REASON_TOO_MANY_CALLS
        with pytest.raises(grpc.RpcError):
            health.Check(HealthCheckRequest(), timeout=300)
    finally:
        hold.set()
    assert {refusal(call.result) for call in set(calls) - refused} == {error.REASON_REQUEST_MALFORMED}
    assert remaining(audits) == 2.0


# How precisely answers are written down.


@pytest.mark.parametrize(
    ("mechanism", "precision"),
    [("exact", "float64"), ("exact", 0), ("laplace", "float32"), ("laplace", 2), ("exact", 6)],
)
def test_no_number_of_an_answer_is_more_precise_than_the_terms_say(
    audits: Audits, cases: dict[str, AuditCase], mechanism: str, precision: Precision
) -> None:
    cases["deal"] = replace(open_case(mechanism, epsilon=math.inf), precision=precision)
    terms = audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=300)
    assert from_precision(terms.precision) == precision
    models = np.random.default_rng(5).uniform(0, 1, (3, 8))
    response = send(audits, [header(predictions=header_of(models), epsilon=math.inf), chunk(models)])
    gaps, low, high = (from_message(part) for part in (response.gaps, response.low, response.high))
    assert (gaps == written_down(gaps, precision)).all()
    exact = models[:, PROTECTED == 1].mean(axis=1) - models[:, PROTECTED == 0].mean(axis=1)
    assert gaps == pytest.approx(exact, abs=1e-15 if precision == "float64" else 0.51)
    # The interval is a function of what is written down: it does not say in which direction an answer was rounded.
    assert (low <= exact + 1e-15).all()
    assert (exact <= high + 1e-15).all()
    if precision != "float64":
        half = spacing(gaps, precision) / 2
        assert low == pytest.approx(np.maximum(gaps - half, -1), abs=1e-15)
        assert high == pytest.approx(np.minimum(gaps + half, 1), abs=1e-15)


def test_the_same_numbers_of_any_type_are_the_same_request(audits: Audits, cases: dict[str, AuditCase]) -> None:
    cases["deal"] = open_case("laplace", 1.0)
    rows = np.tile([[0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 1.0, 1.0]], 2)

    def sent(kind: Any, values: Array = rows) -> bytes:
        return ask(audits, "deal", "r", "sp", values.astype(kind), 0.5).gaps.tobytes()

    first = sent(np.float64)
    assert {sent(kind) for kind in (np.bool_, np.uint8, np.float32)} == {first}
    assert refusal(lambda: sent(np.bool_, rows[::-1])) == error.REASON_REQUEST_ID_REUSED
    assert remaining(audits) == 0.5
