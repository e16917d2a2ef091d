"""ModelService over mTLS: the adversary gets the model's scores, or the reason why not."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import grpc
import numpy as np
import pytest

from adversary.client import predict
from developer.base_model import logistic
from developer.service import ROWS_MAX, ModelService, Released
from fairwall.developer.v1.model_service_pb2 import PredictHeader, PredictRequest
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub, add_ModelServiceServicer_to_server
from fairwall.rpc.errors import CATALOGUE, reason_of
from fairwall.wire.v1 import error_pb2 as error
from fairwall.wire.v1.array_pb2 import ELEMENT_TYPE_FLOAT64, ArrayHeader

COLUMNS = 3


def model(features: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-features @ np.array([1.0, -2.0, 0.5])))


@pytest.fixture
def released() -> dict[str, Released]:
    return {"deal": Released(model, COLUMNS)}


@pytest.fixture
def models(released: dict[str, Released], serve: Any, dial: Any, credentials: Any) -> ModelServiceStub:
    """The adversary's stub of a server that answers for ``released``."""
    address = serve(
        lambda server: add_ModelServiceServicer_to_server(ModelService(released), server), credentials["developer"]
    )
    return ModelServiceStub(dial(address, "developer", credentials["adversary"]))


def header(*shape: int, deal_id: str = "deal", kind: Any = ELEMENT_TYPE_FLOAT64) -> PredictRequest:
    return PredictRequest(
        header=PredictHeader(deal_id=deal_id, features=ArrayHeader(element_type=kind, shape=shape or (2, COLUMNS)))
    )


def chunk(*features: float) -> PredictRequest:
    return PredictRequest(features_chunk=np.array(features or (0.0,) * 2 * COLUMNS, "<f8").tobytes())


def refusal(models: ModelServiceStub, parts: Iterable[PredictRequest]) -> error.Reason:
    with pytest.raises(grpc.RpcError) as caught:
        models.Predict(iter(parts), timeout=5)
    seen: Any = caught.value
    reason = reason_of(seen)
    assert reason != error.REASON_UNSPECIFIED, (seen.code(), seen.details())
    assert (seen.code(), seen.details()) == CATALOGUE[reason]
    return reason


@pytest.mark.parametrize("rows", [1, 7, 60_000])
def test_the_answers_are_the_model_s_scores_bit_for_bit(models: ModelServiceStub, rows: int) -> None:
    features = np.random.default_rng(rows).normal(size=(rows, COLUMNS))
    assert predict(models, "deal", features).tobytes() == model(features).tobytes()


def test_a_trained_model_answers_too(models: ModelServiceStub, released: dict[str, Released]) -> None:
    rng = np.random.default_rng(4)
    features = rng.normal(size=(200, COLUMNS))
    trained = logistic(features, (features[:, 0] > 0).astype(np.uint8))
    released["trained"] = Released(trained, COLUMNS)
    scores = predict(models, "trained", features)
    assert scores.tobytes() == trained(features).tobytes()
    assert scores.min() >= 0
    assert scores.max() <= 1


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


@pytest.mark.parametrize("what", REFUSED)
def test_a_refused_query_says_why_and_the_model_answers_on(models: ModelServiceStub, what: str) -> None:
    parts, reason = REFUSED[what]
    assert refusal(models, parts) == reason
    assert predict(models, "deal", np.zeros((1, COLUMNS))).tolist() == [0.5]


def test_a_model_that_is_withdrawn_answers_no_more(models: ModelServiceStub, released: dict[str, Released]) -> None:
    released.clear()
    assert refusal(models, [header(), chunk()]) == error.REASON_DEAL_UNKNOWN


def test_a_model_that_fails_says_so_and_nothing_else(models: ModelServiceStub, released: dict[str, Released]) -> None:
    def broken(features: np.ndarray) -> np.ndarray:
        raise RuntimeError("the weights are 1, 2 and 3")

    released["broken"] = Released(broken, COLUMNS)
    assert refusal(models, [header(deal_id="broken"), chunk()]) == error.REASON_INTERNAL
    assert len(predict(models, "deal", np.zeros((1, COLUMNS)))) == 1
