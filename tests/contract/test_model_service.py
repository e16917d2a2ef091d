"""ModelService over mTLS: the adversary and compliance get the scores that they may ask for, or the reason why not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import product
from typing import Any

import grpc
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adversary.play import predict
from developer.inference import _black_boxes
from developer.reveal.logistic_models import logistic
from developer.service import ROWS_MAX, Audited, ModelService, ReleasedModel
from fairwall.developer.v1.model_service_pb2 import PredictHeader, PredictRequest
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub, add_ModelServiceServicer_to_server
from fairwall.learning.ensemble import fresh
from fairwall.rpc.arrays import from_message
from fairwall.rpc.errors import CATALOGUE, reason_of
from fairwall.wire.v1 import error_pb2 as error
from fairwall.wire.v1.array_pb2 import ELEMENT_TYPE_FLOAT64, ArrayHeader

COLUMNS = 3


def model(features: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-features @ np.array([1.0, -2.0, 0.5])))


@pytest.fixture
def released() -> dict[str, ReleasedModel]:
    return {"deal": ReleasedModel(model, COLUMNS)}


@pytest.fixture
def audited() -> dict[tuple[str, str], Audited]:
    """A request of two models under way: the number of the model and of the row, in eighths."""
    return {("deal", "r"): Audited(2, COLUMNS, lambda number, features: (number + np.arange(len(features))) / 8)}


@pytest.fixture
def address(released: dict[str, ReleasedModel], audited: Any, serve: Any, credentials: Any) -> str:
    return str(
        serve(
            lambda server: add_ModelServiceServicer_to_server(ModelService(released, audited), server),
            credentials["developer"],
        )
    )


@pytest.fixture
def models(address: str, dial: Any, credentials: Any) -> ModelServiceStub:
    """The adversary's stub of a server that answers for ``released``."""
    return ModelServiceStub(dial(address, "developer", credentials["adversary"]))


@pytest.fixture
def for_compliance(address: str, dial: Any, credentials: Any) -> ModelServiceStub:
    return ModelServiceStub(dial(address, "developer", credentials["compliance"]))


def header(
    *shape: int, deal_id: str = "deal", kind: Any = ELEMENT_TYPE_FLOAT64, request_id: str = "", number: int = 0
) -> PredictRequest:
    return PredictRequest(
        header=PredictHeader(
            deal_id=deal_id,
            features=ArrayHeader(element_type=kind, shape=shape or (2, COLUMNS)),
            request_id=request_id,
            model=number,
        )
    )


def chunk(*features: float) -> PredictRequest:
    return PredictRequest(features_chunk=np.array(features or (0.0,) * 2 * COLUMNS, "<f8").tobytes())


def refusal(models: ModelServiceStub, parts: Iterable[PredictRequest]) -> error.Reason:
    with pytest.raises(grpc.RpcError) as caught:
        models.Predict(iter(parts), timeout=300)
    seen: Any = caught.value
    reason = reason_of(seen)
    assert reason != error.REASON_UNSPECIFIED, (seen.code(), seen.details())
    assert (seen.code(), seen.details()) == CATALOGUE[reason]
    return reason


@pytest.mark.parametrize("rows", [1, 7, 60_000])
def test_the_answers_are_the_model_s_scores_bit_for_bit(models: ModelServiceStub, rows: int) -> None:
    features = np.random.default_rng(rows).normal(size=(rows, COLUMNS))
    assert predict(models, "deal", features).tobytes() == model(features).tobytes()


def test_a_trained_model_answers_too(models: ModelServiceStub, released: dict[str, ReleasedModel]) -> None:
    rng = np.random.default_rng(4)
    features = rng.normal(size=(200, COLUMNS))
    trained = logistic(features, (features[:, 0] > 0).astype(np.uint8))
    released["trained"] = ReleasedModel(trained, COLUMNS)
    scores = predict(models, "trained", features)
    assert scores.tobytes() == trained(features).tobytes()
    assert scores.min() >= 0
    assert scores.max() <= 1


@pytest.mark.parametrize("unit_rows", [False, True])
def test_models_released_for_labels_alone_answer_0_or_1_whatever_is_asked(
    models: ModelServiceStub, released: dict[str, ReleasedModel], unit_rows: bool
) -> None:
    rngs = [np.random.default_rng(seed) for seed in range(3)]
    victims = replace(fresh(COLUMNS, (8,), rngs), unit_rows=unit_rows)
    released["labels"] = _black_boxes(victims, COLUMNS, labels_only=True)
    released["scores"] = _black_boxes(victims, COLUMNS, labels_only=False)
    edge = 2.0**-1074, 1e-30, 0.0, 1.0, 1e6, 1e30
    corners = np.array(list(product([*edge, *(-each for each in edge)], repeat=COLUMNS)))
    near = np.random.default_rng(9).normal(size=(2000, COLUMNS)) * np.logspace(-9, 9, 2000)[:, None]
    seen = set()
    for features in (corners, near):
        for number in range(3):
            scores = predict(models, "scores", features, number)
            labels = predict(models, "labels", features, number)
            # What the control shows in scores does not show in labels.
            assert len(np.unique(scores)) > 2
            assert labels.tolist() == [float(score >= 0.5) for score in scores]
            seen |= set(labels.tolist())
    assert seen == {0.0, 1.0}


@given(st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3), min_size=1))
@settings(max_examples=100, deadline=None)
def test_every_row_of_numbers_has_a_label_and_a_score(rows: list[list[float]]) -> None:
    victim = fresh(COLUMNS, (8,), [np.random.default_rng(0)])
    for model in (victim, replace(victim, unit_rows=True)):
        for labels_only, allowed in ((True, {0.0, 1.0}), (False, None)):
            answers = _black_boxes(model, COLUMNS, labels_only=labels_only).model(np.array(rows))
            assert ((answers >= 0) & (answers <= 1)).all()
            assert allowed is None or set(answers.tolist()) <= allowed


def test_a_model_answers_as_many_rows_as_it_says_at_most(models: ModelServiceStub) -> None:
    assert len(predict(models, "deal", np.zeros((ROWS_MAX, COLUMNS)))) == ROWS_MAX


REFUSED = {
    "too few columns": ([header(2, 2), chunk(0, 0, 0, 0)], error.REASON_FEATURES_SHAPE),
    "too many columns": ([header(1, 4), chunk(0, 0, 0, 0)], error.REASON_FEATURES_SHAPE),
    "one axis": ([header(COLUMNS), chunk(0, 0, 0)], error.REASON_FEATURES_SHAPE),
    "three axes": ([header(1, 1, COLUMNS), chunk(0, 0, 0)], error.REASON_FEATURES_SHAPE),
    "no rows": ([header(0, COLUMNS)], error.REASON_FEATURES_SHAPE),
    "too many rows": ([header(ROWS_MAX + 1, COLUMNS)], error.REASON_FEATURES_SHAPE),
    "rows without end": ([header(2**64 - 1, COLUMNS)], error.REASON_FEATURES_SHAPE),
    "a NaN": ([header(1, COLUMNS), chunk(0, math.nan, 0)], error.REASON_FEATURES_NOT_FINITE),
    "an infinity": ([header(1, COLUMNS), chunk(0, 0, -math.inf)], error.REASON_FEATURES_NOT_FINITE),
    "too many bytes": ([header(), chunk(), PredictRequest(features_chunk=b"1")], error.REASON_REQUEST_MALFORMED),
    "too few bytes": ([header(), chunk(0)], error.REASON_REQUEST_MALFORMED),
    "no chunk": ([header()], error.REASON_REQUEST_MALFORMED),
    "nothing at all": ([], error.REASON_REQUEST_MALFORMED),
    "a chunk first": ([chunk(), header()], error.REASON_REQUEST_MALFORMED),
    "the header twice": ([header(), header(), chunk()], error.REASON_REQUEST_MALFORMED),
    "an empty part": ([header(), PredictRequest(), chunk()], error.REASON_REQUEST_MALFORMED),
    "an unknown element type": ([header(kind=99), chunk()], error.REASON_REQUEST_MALFORMED),
    "an unknown deal": ([header(deal_id="other"), chunk()], error.REASON_DEAL_UNKNOWN),
}


def test_a_refused_query_says_why_and_the_model_answers_on(models: ModelServiceStub) -> None:
    for what, (parts, reason) in REFUSED.items():
        assert refusal(models, parts) == reason, what
        assert predict(models, "deal", np.zeros((1, COLUMNS))).tolist() == [0.5], what


def test_a_model_that_is_withdrawn_answers_no_more(
    models: ModelServiceStub, released: dict[str, ReleasedModel]
) -> None:
    released.clear()
    assert refusal(models, [header(), chunk()]) == error.REASON_DEAL_UNKNOWN


def test_a_model_that_fails_says_so_and_nothing_else(
    models: ModelServiceStub, released: dict[str, ReleasedModel]
) -> None:
    def broken(features: np.ndarray) -> np.ndarray:
        raise RuntimeError("the weights are 1, 2 and 3")

    released["broken"] = ReleasedModel(broken, COLUMNS)
    assert refusal(models, [header(deal_id="broken"), chunk()]) == error.REASON_INTERNAL
    assert len(predict(models, "deal", np.zeros((1, COLUMNS)))) == 1


# Compliance, for the sake of an audit.


def test_compliance_is_answered_for_a_request_that_is_under_way(for_compliance: ModelServiceStub) -> None:
    answers = [
        for_compliance.Predict(iter([header(request_id="r", number=number), chunk()]), timeout=300) for number in (0, 1)
    ]
    assert [from_message(answer.scores).tolist() for answer in answers] == [[0, 1 / 8], [1 / 8, 2 / 8]]


def test_compliance_is_refused_whatever_is_not_under_way(for_compliance: ModelServiceStub) -> None:
    """Another request, a released model, another deal, a model too many, and models without end."""
    others: tuple[dict[str, Any], ...] = (
        {"request_id": "other"},
        {"request_id": ""},
        {"request_id": "r", "deal_id": "other"},
        {"request_id": "r", "number": 2},
        {"request_id": "r", "number": 2**64 - 1},
    )
    for asked in others:
        assert refusal(for_compliance, [header(**asked), chunk()]) == error.REASON_REQUEST_UNKNOWN, asked


def test_compliance_is_refused_a_request_that_is_finished(
    for_compliance: ModelServiceStub, audited: dict[tuple[str, str], Audited]
) -> None:
    audited.clear()
    assert refusal(for_compliance, [header(request_id="r"), chunk()]) == error.REASON_REQUEST_UNKNOWN


def test_the_adversary_is_refused_the_models_of_a_request(models: ModelServiceStub) -> None:
    assert refusal(models, [header(request_id="r"), chunk()]) == error.REASON_REQUEST_UNKNOWN


def test_rows_of_another_width_are_refused_to_compliance_too(for_compliance: ModelServiceStub) -> None:
    parts = [header(1, COLUMNS + 1, request_id="r"), chunk(0, 0, 0, 0)]
    assert refusal(for_compliance, parts) == error.REASON_FEATURES_SHAPE
