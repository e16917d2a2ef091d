"""The adversary in the training game: it guesses which canaries the released model was trained on."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from adversary.client import predict
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.game.v1 import training_service_pb2 as training
from fairwall.game.v1.training_service_pb2_grpc import TrainingServiceStub
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals

LOG = logging.getLogger(__name__)

NO_GUESS = 2


def play(seat: Seat) -> None:
    """Attack the released model of every trial that has canaries."""
    referee = TrainingServiceStub(seat.referee)
    with seat.reach("developer") as connection:
        models = ModelServiceStub(connection)
        for deal, cards in deals(referee.TakeCanaryDeal, training.TakeCanaryDealRequest):
            features = cards["features"].astype(np.float64, copy=False)
            guesses = guess(predict(models, deal.deal_id, features), cards["labels"].astype(np.uint8, copy=False))
            LOG.info("deal %s: %d guesses about canaries", deal.deal_id, int((guesses != NO_GUESS).sum()))
            referee.SubmitCanaries(
                training.SubmitCanariesRequest(deal_id=deal.deal_id, guesses=to_message(guesses)),
                timeout=CALL_SECONDS,
            )


def guess(scores: NDArray[np.float64], labels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Guess which canaries were training rows: 1 for the best-fitted third, 0 for the worst, else `NO_GUESS`.

    Abstaining on the middle third gives a stronger proof (Steinke, Nasr and Jagielski, NeurIPS 2023).
    """
    fit = np.where(labels == 1, scores, 1 - scores)
    guesses = np.full(len(fit), NO_GUESS, np.uint8)
    order, third = np.argsort(fit, kind="stable"), -(-len(fit) // 3)
    guesses[order[:third]] = 0
    guesses[order[len(fit) - third :]] = 1
    return guesses
