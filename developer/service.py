"""ModelService: black-box access to the released models and to the models under audit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import grpc
import numpy as np

from developer.reveal.logistic_models import Model
from fairwall.arrays import Floats
from fairwall.developer.v1 import model_service_pb2 as model
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceServicer
from fairwall.rpc import arrays
from fairwall.rpc.errors import Refusal
from fairwall.rpc.identity import identify
from fairwall.wire.v1 import array_pb2, error_pb2

ROWS_MAX = 100_000
"""Most rows in one query: its answer still fits one message."""

_FAR = 1e12


def within_reach(features: Floats) -> Floats:
    """Return features clipped to a range far wider than any standardised feature's.

    Slightly larger numbers would overflow single-precision models and score as NaN.
    """
    return np.clip(features, -_FAR, _FAR)


@dataclass(frozen=True)
class ReleasedModel:
    """The released model, its number of features, and the further released models, numbered from 1."""

    model: Model
    features: int
    others: tuple[Model, ...] = ()

    @property
    def models(self) -> tuple[Model, ...]:
        """All released models, by number."""
        return (self.model, *self.others)


@dataclass(frozen=True)
class Audited:
    """A pending AuditModels request.

    models : number of models.
    features : number of features of each model.
    answer : maps a model's number and features, (rows, features), to the scores returned to compliance, (rows,).
    """

    models: int
    features: int
    answer: Callable[[int, Floats], Floats]


@dataclass(frozen=True)
class Shelf:
    """The models that ModelService serves; games add and remove entries.

    released : by deal id.
    audited : by deal id and request id, while compliance's request is pending.
    """

    released: dict[str, ReleasedModel] = field(default_factory=dict)
    audited: dict[tuple[str, str], Audited] = field(default_factory=dict)


class ModelService(ModelServiceServicer):
    """A service for the adversary (released models) and compliance (pending audits).

    Both mappings, those of a `Shelf`, are owned by the caller, who adds and removes entries.
    """

    def __init__(self, released: Mapping[str, ReleasedModel], audited: Mapping[tuple[str, str], Audited]) -> None:
        self._released = released
        self._audited = audited

    def Predict(
        self, request_iterator: Iterator[model.PredictRequest], context: grpc.ServicerContext
    ) -> model.PredictResponse:
        """Return the scores of rows of features."""
        header = arrays.first_header(request_iterator)
        caller = identify(context)
        if caller is not None and caller.party == "compliance":
            asked = self._under_way(header)
            features = _receive(header.features, request_iterator, asked.features)
            return model.PredictResponse(scores=arrays.to_message(asked.answer(header.model, features)))
        if header.request_id:
            raise Refusal(error_pb2.REASON_REQUEST_UNKNOWN)
        released = self._released.get(header.deal_id)
        if released is None or header.model >= len(released.models):
            raise Refusal(error_pb2.REASON_DEAL_UNKNOWN)
        features = _receive(header.features, request_iterator, released.features)
        return model.PredictResponse(scores=arrays.to_message(released.models[header.model](features)))

    def _under_way(self, header: model.PredictHeader) -> Audited:
        asked = self._audited.get((header.deal_id, header.request_id))
        if asked is None or header.model >= asked.models:
            raise Refusal(error_pb2.REASON_REQUEST_UNKNOWN)
        return asked


def _receive(header: array_pb2.ArrayHeader, requests: Iterator[model.PredictRequest], columns: int) -> Floats:
    shape = header.shape
    if len(shape) != 2 or shape[1] != columns or not 1 <= shape[0] <= ROWS_MAX:
        raise Refusal(error_pb2.REASON_FEATURES_SHAPE)
    features = arrays.array_after(header, requests, "features_chunk").astype(np.float64, copy=False)
    if not np.isfinite(features).all():
        raise Refusal(error_pb2.REASON_FEATURES_NOT_FINITE)
    return features
