"""The developer's models, queried by compliance about the test set's features.

Querying a model that somebody else serves shows the rows to that server, which may answer anything: this does not keep
a test set from the developer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import grpc
import numpy as np

from fairwall.arrays import Floats
from fairwall.developer.v1 import model_service_pb2 as model_service
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.rpc import arrays
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2


class ModelScores(Protocol):
    """Models that can be queried about the test set: served by the developer, or uploaded."""

    def scores(self, request_id: str, count: int, context: grpc.ServicerContext, /) -> Floats:
        """Return each model's scores, shape (count, people), see `QueriedModels.scores`."""


@dataclass(frozen=True, eq=False)
class QueriedModels:
    """The models of one deal, and the rows they are queried about.

    `features`: of the test set, shape (people, d), in the order of its records.
    """

    service: ModelServiceStub = field(repr=False)
    deal_id: str
    features: Floats = field(repr=False)

    def scores(self, request_id: str, count: int, context: grpc.ServicerContext) -> Floats:
        """Query each model in turn; return scores, shape (count, people), whose values are not yet checked.

        Refusal at the first model that does not answer, or not with one number a person.

        `request_id`: the developer's request that waits meanwhile. `context`: of that request; bounds the wait for each
        model.
        """
        rows = np.empty((count, len(self.features)))
        for model in range(count):
            rows[model] = self._one(request_id, model, min(CALL_SECONDS, context.time_remaining()))
        return rows

    def _one(self, request_id: str, model: int, seconds: float) -> Floats:
        try:
            response: model_service.PredictResponse = self.service.Predict(
                self._parts(request_id, model), timeout=seconds
            )
            scores = arrays.from_message(response.scores)
        except (grpc.RpcError, arrays.ArrayError):
            raise Refusal(error_pb2.REASON_MODEL_UNAVAILABLE) from None
        if scores.shape != (len(self.features),):
            raise Refusal(error_pb2.REASON_PREDICTIONS_SHAPE)
        return scores.astype(np.float64, copy=False)

    def _parts(self, request_id: str, model: int) -> Iterator[model_service.PredictRequest]:
        yield model_service.PredictRequest(
            header=model_service.PredictHeader(
                deal_id=self.deal_id,
                features=arrays.header_of(self.features),
                request_id=request_id,
                model=model,
            )
        )
        for chunk in arrays.chunks_of(self.features):
            yield model_service.PredictRequest(features_chunk=chunk)
