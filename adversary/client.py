"""The adversary's client of ModelService."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from fairwall.developer.v1 import model_service_pb2 as model
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.rpc import arrays
from fairwall.rpc.channel import CALL_SECONDS


def predict(
    service: ModelServiceStub, deal_id: str, features: NDArray[np.float64], number: int = 0
) -> NDArray[np.float64]:
    """Return the scores in [0, 1], (rows,), of a deal's model for features, (rows, d), at most 100,000 rows."""

    def parts() -> Iterator[model.PredictRequest]:
        header = model.PredictHeader(deal_id=deal_id, model=number, features=arrays.header_of(features))
        yield model.PredictRequest(header=header)
        yield from (model.PredictRequest(features_chunk=chunk) for chunk in arrays.chunks_of(features))

    response: model.PredictResponse = service.Predict(parts(), timeout=CALL_SECONDS)
    return arrays.from_message(response.scores).astype(np.float64, copy=False)
