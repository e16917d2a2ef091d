"""Serve the models of a kit's policy with this project's own ModelService, as the tester starts it.

python -m sim.conformance.reference_developer --policy FILE
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from developer.service import Audited, ModelService, ReleasedModel
from fairwall.arrays import Floats
from fairwall.developer.v1.model_service_pb2_grpc import add_ModelServiceServicer_to_server
from sim.conformance.reference import serve

Model = Callable[[Floats], Floats]


def main(service: type[ModelService] = ModelService) -> None:
    """Serve until stopped."""
    serve("developer", lambda server, policy: add_ModelServiceServicer_to_server(_open(service, policy), server))


def _open(service: type[ModelService], policy: dict[str, Any]) -> ModelService:
    deal, weights = policy["model"]["deal"], np.array(policy["model"]["weights"])
    request, models = policy["audited"]["request"], policy["audited"]["models"]
    columns = len(weights)
    released = {deal: ReleasedModel(_model(weights, 0), columns)}
    audited = {(deal, request): Audited(models, columns, lambda number, rows: _model(weights, number)(rows))}
    return service(released, audited)


def _model(weights: Floats, number: int) -> Model:
    def scores(features: Floats) -> Floats:
        with np.errstate(over="ignore"):
            found: Floats = 1 / (1 + np.exp(-(number + 1) * (features @ weights)))
        return found

    return scores


if __name__ == "__main__":
    main()
