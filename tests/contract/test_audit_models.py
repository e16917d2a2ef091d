"""AuditModels over mTLS: compliance asks the developer's models about rows of its own, and answers as for Audit."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import grpc
import numpy as np
import pytest
from numpy.typing import NDArray

from compliance.answers.audit_service import AuditService
from compliance.answers.audits import AuditCase, game_case
from compliance.answers.black_box import QueriedModels
from compliance.ledger.accountant import Budget
from compliance.mechanisms import MECHANISMS
from compliance.records.people import Records
from developer.reveal.hidden import HiddenAudits
from developer.reveal.logistic_models import identity
from developer.service import Audited, ModelService, ReleasedModel
from fairwall.client.gaps import Audits, ask, ask_models
from fairwall.compliance.v1.audit_service_pb2 import AuditModelsRequest, GetTermsRequest
from fairwall.compliance.v1.audit_service_pb2_grpc import add_AuditServiceServicer_to_server
from fairwall.developer.v1.model_service_pb2 import PredictResponse
from fairwall.developer.v1.model_service_pb2_grpc import (
    ModelServiceServicer,
    ModelServiceStub,
    add_ModelServiceServicer_to_server,
)
from fairwall.rpc.arrays import to_message
from fairwall.wire.v1 import error_pb2 as error
from fairwall.wire.v1.array_pb2 import Array, ArrayHeader
from fairwall.wire.v1.metric_pb2 import METRIC_ABS_EO, METRIC_SP, METRIC_UNSPECIFIED
from tests.contract.refused import refusal

LABELS = np.array([1, 1, 1, 0, 0, 1, 1, 0], np.uint8)
PROTECTED = np.array([1, 0, 1, 1, 0, 0, 1, 0], np.uint8)
FEATURES = np.linspace(0, 1, 8)[:, None]
PREDICTIONS = np.random.default_rng(1).random((3, 8))

Asked = dict[tuple[str, str], Audited]


def open_case(models: QueriedModels | None, epsilon: float = 2.0, mechanism: str = "laplace") -> AuditCase:
    records = Records(LABELS, PROTECTED, ("sp", "abs_sp"))
    return game_case("deal", records, MECHANISMS[mechanism], Budget(epsilon), 0.0, 3, b"s" * 32, models=models)


class Answering(ModelServiceServicer):
    """A developer's server that answers compliance as a test likes."""

    def __init__(self) -> None:
        self.scores: Callable[[int], Any] = lambda model: to_message(PREDICTIONS[model])
        self.asked: list[tuple[str, str, int]] = []

    def Predict(self, request_iterator: Any, context: grpc.ServicerContext) -> PredictResponse:  # noqa: ARG002, N802
        header = next(request_iterator).header
        b"".join(part.features_chunk for part in request_iterator)
        self.asked.append((header.deal_id, header.request_id, header.model))
        return PredictResponse(scores=self.scores(header.model))


@pytest.fixture
def answering() -> Answering:
    return Answering()


@pytest.fixture
def cases(answering: Answering, serve: Any, dial: Any, credentials: Any) -> dict[str, AuditCase]:
    address = serve(lambda server: add_ModelServiceServicer_to_server(answering, server), credentials["developer"])
    models = ModelServiceStub(dial(address, "developer", credentials["compliance"]))
    return {"deal": open_case(QueriedModels(models, "deal", FEATURES))}


@pytest.fixture
def audits(cases: dict[str, AuditCase], serve: Any, dial: Any, credentials: Any) -> Audits:
    address = serve(
        lambda server: add_AuditServiceServicer_to_server(AuditService(cases), server), credentials["compliance"]
    )
    return Audits(dial(address, "compliance", credentials["developer"]))


def request(**changes: Any) -> AuditModelsRequest:
    asked = {"request_id": "r", "deal_id": "deal", "metric": METRIC_SP, "epsilon": 1.0, "models": 3}
    return AuditModelsRequest(**{**asked, **changes})


def nothing_was_charged(audits: Audits, case: AuditCase) -> bool:
    terms = audits.GetTerms(GetTermsRequest(deal_id="deal"), timeout=300)
    return bool(terms.epsilon_remaining == 2.0 and case.ledger.entries("deal") == ())


def test_the_answer_is_the_one_that_audit_gives_for_the_same_predictions(
    audits: Audits, cases: dict[str, AuditCase], answering: Answering
) -> None:
    models = cases["deal"].models
    for threshold in (None, 0.1):
        cases["deal"] = open_case(models)
        asked = ask_models(audits, "deal", "r", "sp", 3, 1.0, threshold=threshold)
        cases["deal"] = open_case(None)
        sent = ask(audits, "deal", "r", "sp", PREDICTIONS, 1.0, threshold=threshold)
        for name in ("gaps", "low", "high"):
            assert getattr(asked, name).tobytes() == getattr(sent, name).tobytes()
        assert (asked.epsilon_charged, asked.epsilon_remaining) == (1.0, 1.0)
        if threshold is not None:
            assert asked.probability_above is not None
            assert sent.probability_above is not None
            assert asked.probability_above.tobytes() == sent.probability_above.tobytes()
    assert answering.asked == [("deal", "r", model) for model in range(3)] * 2


@pytest.mark.parametrize("kind", [np.float32, np.uint8])
def test_scores_of_other_types_are_taken(
    audits: Audits, cases: dict[str, AuditCase], answering: Answering, kind: Any
) -> None:
    cases["deal"] = open_case(cases["deal"].models, math.inf, "exact")
    scores = (PREDICTIONS > 0.5).astype(kind)
    answering.scores = lambda model: to_message(scores[model])
    exact = scores[:, PROTECTED == 1].mean(axis=1) - scores[:, PROTECTED == 0].mean(axis=1)
    assert ask_models(audits, "deal", "r", "sp", 3, math.inf).gaps == pytest.approx(exact)


def changed(at: int, value: float) -> NDArray[np.float64]:
    scores = PREDICTIONS[2].copy()
    scores[at] = value
    return scores


NONSENSE: dict[str, tuple[Any, error.Reason]] = {
    "a NaN": (to_message(changed(3, math.nan)), error.REASON_PREDICTIONS_NOT_FINITE),
    "an infinity": (to_message(changed(7, math.inf)), error.REASON_PREDICTIONS_NOT_FINITE),
    "just above 1": (to_message(changed(0, np.nextafter(1, 2))), error.REASON_PREDICTIONS_OUT_OF_RANGE),
    "just below 0": (to_message(changed(0, -5e-324)), error.REASON_PREDICTIONS_OUT_OF_RANGE),
    "too few": (to_message(PREDICTIONS[2, :7]), error.REASON_PREDICTIONS_SHAPE),
    "too many": (to_message(np.append(PREDICTIONS[2], 0.5)), error.REASON_PREDICTIONS_SHAPE),
    "two axes": (to_message(PREDICTIONS[2:]), error.REASON_PREDICTIONS_SHAPE),
    "none": (to_message(np.empty(0)), error.REASON_PREDICTIONS_SHAPE),
    "no array": (Array(), error.REASON_MODEL_UNAVAILABLE),
    "too few bytes": (Array(header=ArrayHeader(element_type=1, shape=[8]), data=b"1"), error.REASON_MODEL_UNAVAILABLE),  # type: ignore[arg-type]
    "an unknown type": (Array(header=ArrayHeader(element_type=99, shape=[8])), error.REASON_MODEL_UNAVAILABLE),  # type: ignore[arg-type]
}


def test_a_model_that_answers_nonsense_is_refused_and_nothing_charged(
    audits: Audits, cases: dict[str, AuditCase], answering: Answering
) -> None:
    honest = answering.scores
    for what, (nonsense, reason) in NONSENSE.items():
        answering.scores = lambda model, nonsense=nonsense: nonsense if model == 2 else honest(model)
        assert refusal(lambda: audits.AuditModels(request(), timeout=300)) == reason, what
        assert nothing_was_charged(audits, cases["deal"]), what
    answering.scores = honest
    assert audits.AuditModels(request(), timeout=300).answer.epsilon_remaining == 1.0


def test_a_model_that_fails_is_unavailable_and_nothing_charged(
    audits: Audits, cases: dict[str, AuditCase], answering: Answering
) -> None:
    def broken(_: int) -> Any:
        raise RuntimeError("the weights are 1, 2 and 3")

    answering.scores = broken
    assert refusal(lambda: audits.AuditModels(request(), timeout=300)) == error.REASON_MODEL_UNAVAILABLE
    assert nothing_was_charged(audits, cases["deal"])


def test_a_model_that_hangs_is_waited_for_no_longer_than_an_ordinary_call(
    audits: Audits, cases: dict[str, AuditCase], answering: Answering, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("compliance.answers.black_box.CALL_SECONDS", 0.2)
    hold = threading.Event()
    answering.scores = lambda _: hold.wait(300) and None
    try:
        assert refusal(lambda: audits.AuditModels(request(), timeout=300)) == error.REASON_MODEL_UNAVAILABLE
    finally:
        hold.set()
    assert nothing_was_charged(audits, cases["deal"])


def test_a_developer_that_is_not_there_is_unavailable_and_nothing_charged(
    audits: Audits, cases: dict[str, AuditCase], dial: Any, credentials: Any
) -> None:
    nobody = ModelServiceStub(dial("127.0.0.1:1", "developer", credentials["compliance"]))
    cases["deal"] = open_case(QueriedModels(nobody, "deal", FEATURES))
    assert refusal(lambda: audits.AuditModels(request(), timeout=300)) == error.REASON_MODEL_UNAVAILABLE
    assert nothing_was_charged(audits, cases["deal"])


REFUSED: dict[str, tuple[AuditModelsRequest, error.Reason]] = {
    "no model": (request(models=0), error.REASON_QUERIES_OUT_OF_RANGE),
    "too many models": (request(models=4), error.REASON_QUERIES_OUT_OF_RANGE),
    "models without end": (request(models=2**64 - 1), error.REASON_QUERIES_OUT_OF_RANGE),
    "no metric": (request(metric=METRIC_UNSPECIFIED), error.REASON_METRIC_UNKNOWN),
    "a metric not allowed": (request(metric=METRIC_ABS_EO), error.REASON_METRIC_NOT_ALLOWED),
    "epsilon 0": (request(epsilon=0.0), error.REASON_EPSILON_INVALID),
    "a threshold NaN": (request(threshold=math.nan), error.REASON_REQUEST_MALFORMED),
    "an unknown deal": (request(deal_id="other"), error.REASON_DEAL_UNKNOWN),
    "an empty request id": (request(request_id=""), error.REASON_REQUEST_ID_INVALID),
}


def test_a_request_that_cannot_be_answered_is_refused_before_any_model_is_asked(
    audits: Audits, cases: dict[str, AuditCase], answering: Answering
) -> None:
    for what, (bad, reason) in REFUSED.items():
        assert refusal(lambda bad=bad: audits.AuditModels(bad, timeout=300)) == reason, what  # type: ignore[misc]
        assert answering.asked == [], what
        assert nothing_was_charged(audits, cases["deal"]), what


def test_more_than_the_budget_is_refused(audits: Audits, cases: dict[str, AuditCase]) -> None:
    assert refusal(lambda: audits.AuditModels(request(epsilon=2.5), timeout=300)) == error.REASON_BUDGET_EXHAUSTED
    assert nothing_was_charged(audits, cases["deal"])


def test_a_service_without_features_refuses(audits: Audits, cases: dict[str, AuditCase]) -> None:
    cases["deal"] = open_case(None)
    assert refusal(lambda: audits.AuditModels(request(), timeout=300)) == error.REASON_NO_FEATURES
    assert nothing_was_charged(audits, cases["deal"])


def test_a_call_without_a_deadline_is_refused(audits: Audits) -> None:
    assert refusal(lambda: audits.AuditModels(request())) == error.REASON_DEADLINE_MISSING


# One answer a request.


def test_the_same_request_again_is_charged_once(audits: Audits, cases: dict[str, AuditCase]) -> None:
    first, again = (audits.AuditModels(request(), timeout=300) for _ in range(2))
    assert again == first
    assert len(cases["deal"].ledger.entries("deal")) == 1


def test_models_that_answer_otherwise_are_another_request(
    audits: Audits, cases: dict[str, AuditCase], answering: Answering
) -> None:
    audits.AuditModels(request(), timeout=300)
    answering.scores = lambda model: to_message(1 - PREDICTIONS[model])
    assert refusal(lambda: audits.AuditModels(request(), timeout=300)) == error.REASON_REQUEST_ID_REUSED
    assert len(cases["deal"].ledger.entries("deal")) == 1


def test_an_id_is_good_for_one_request_of_either_kind(audits: Audits, cases: dict[str, AuditCase]) -> None:
    audits.AuditModels(request(), timeout=300)
    assert refusal(lambda: ask(audits, "deal", "r", "sp", PREDICTIONS, 1.0)) == error.REASON_REQUEST_ID_REUSED
    assert len(cases["deal"].ledger.entries("deal")) == 1


# The developer's side.


@pytest.fixture
def audited() -> Asked:
    return {}


@pytest.fixture
def hidden(
    audited: Asked, cases: dict[str, AuditCase], audits: Audits, serve: Any, dial: Any, credentials: Any
) -> HiddenAudits:
    """The developer's real server, and what it asks through."""
    address = serve(
        lambda server: add_ModelServiceServicer_to_server(ModelService({}, audited), server), credentials["developer"]
    )
    models = ModelServiceStub(dial(address, "developer", credentials["compliance"]))
    cases["deal"] = replace(open_case(None, math.inf, "exact"), models=QueriedModels(models, "deal", FEATURES))
    return HiddenAudits(audits, audited, "deal", "sp", 1)


def test_one_audit_of_the_base_model_shows_the_rows_and_the_next_are_of_whatever_is_wanted(
    hidden: HiddenAudits, cases: dict[str, AuditCase], audited: Asked
) -> None:
    features, scores = hidden.look(ReleasedModel(identity, 1), "first", math.inf)
    assert features.tobytes() == FEATURES.tobytes()
    assert scores.tobytes() == identity(FEATURES).tobytes()
    wanted = np.eye(8)[:3]
    gaps = hidden.ask("second", wanted, math.inf)
    assert gaps.tolist() == [1 / 4, -1 / 4, 1 / 4]  # the sign of each of three people's group
    assert [entry.request.request_id for entry in cases["deal"].ledger.entries("deal")] == ["first", "second"]
    assert audited == {}


def test_a_request_that_was_refused_is_no_longer_under_way(hidden: HiddenAudits, audited: Asked) -> None:
    assert refusal(lambda: hidden.ask("r", np.full((1, 8), 2.0), math.inf)) == error.REASON_PREDICTIONS_OUT_OF_RANGE
    assert audited == {}


def test_compliance_gets_no_answer_for_what_the_developer_did_not_send(hidden: HiddenAudits, audits: Audits) -> None:
    unsent = request(epsilon=math.inf)
    assert refusal(lambda: audits.AuditModels(unsent, timeout=300)) == error.REASON_MODEL_UNAVAILABLE
