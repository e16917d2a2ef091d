"""The customer in the washing game: it queries the deployed model and reports the decisions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from adversary.client import predict
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.game.v1 import wash_service_pb2 as wire
from fairwall.game.v1.wash_service_pb2_grpc import WashServiceStub
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals, generator


def play(seat: Seat) -> None:
    """Query and report the rows of every trial that has rows to check."""
    referee = WashServiceStub(seat.referee)
    with seat.reach("developer") as connection:
        models = ModelServiceStub(connection)
        for deal, cards in deals(referee.TakeCheckDeal, wire.TakeCheckDealRequest):
            scores = predict(models, deal.deal_id, cards["features"].astype(np.float64, copy=False))
            seen = reported(scores, deal.wrong, deal.seed)
            referee.SubmitSighting(
                wire.SubmitSightingRequest(deal_id=deal.deal_id, seen=to_message(seen)), timeout=CALL_SECONDS
            )


def reported(scores: NDArray[np.float64], wrong: float, seed: bytes) -> NDArray[np.uint8]:
    """Return a model's decisions, (rows,), each flipped with probability `wrong`, drawn from the customer's seed."""
    mistaken = generator(seed).random(len(scores)) < wrong
    return ((scores >= 0.5) ^ mistaken).astype(np.uint8)
