"""The adversary in the reveal game: it takes a public sample, queries the released model, and reports its loss test."""

from __future__ import annotations

import logging

import numpy as np

from adversary.attacks.loss_test import loss_test
from adversary.client import predict
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.game.v1 import reveal_service_pb2 as game
from fairwall.game.v1.reveal_service_pb2_grpc import RevealServiceStub
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals

LOG = logging.getLogger(__name__)


def play(seat: Seat) -> None:
    """Attack the released model of every trial that includes the adversary."""
    referee = RevealServiceStub(seat.referee)
    with seat.reach("developer") as connection:
        models = ModelServiceStub(connection)
        for deal, cards in deals(referee.TakeAdversaryDeal, game.TakeAdversaryDealRequest):
            LOG.info("deal %s: %s on %d public rows", deal.deal_id, deal.attack, len(cards["labels"]))
            test = loss_test(
                lambda features, deal_id=deal.deal_id: predict(models, deal_id, features),  # type: ignore[misc]
                cards["features"].astype(np.float64, copy=False),
                cards["labels"].astype(np.uint8, copy=False),
                deal.disadvantaged_rows,
            )
            referee.SubmitLossTest(
                game.SubmitLossTestRequest(
                    deal_id=deal.deal_id,
                    accuracy_advantaged=test.accuracy_advantaged,
                    accuracy_disadvantaged=test.accuracy_disadvantaged,
                ),
                timeout=CALL_SECONDS,
            )
