"""The adversary in the games of revealing, training and washing, and its client of ModelService."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import numpy as np

from adversary.attacks.loss_attack import loss_test
from fairwall.arrays import Bytes, Floats
from fairwall.developer.v1 import model_service_pb2 as model
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.game.v1 import reveal_service_pb2 as reveal
from fairwall.game.v1 import training_service_pb2 as training
from fairwall.game.v1 import wash_service_pb2 as wash
from fairwall.game.v1.reveal_service_pb2_grpc import RevealServiceStub
from fairwall.game.v1.training_service_pb2_grpc import TrainingServiceStub
from fairwall.game.v1.wash_service_pb2_grpc import WashServiceStub
from fairwall.rpc import arrays
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals, generator

LOG = logging.getLogger(__name__)

NO_GUESS = 2


def predict(service: ModelServiceStub, deal_id: str, features: Floats, number: int = 0) -> Floats:
    """Return the scores in [0, 1], (rows,), of a deal's model for features, (rows, d), at most 100,000 rows."""

    def parts() -> Iterator[model.PredictRequest]:
        header = model.PredictHeader(deal_id=deal_id, model=number, features=arrays.header_of(features))
        yield model.PredictRequest(header=header)
        yield from (model.PredictRequest(features_chunk=chunk) for chunk in arrays.chunks_of(features))

    response: model.PredictResponse = service.Predict(parts(), timeout=CALL_SECONDS)
    return arrays.from_message(response.scores).astype(np.float64, copy=False)


def play_reveal(seat: Seat) -> None:
    """Take a public sample, query the released model, and report its loss test, in every trial with an adversary."""
    referee = RevealServiceStub(seat.referee)
    with seat.reach("developer") as connection:
        models = ModelServiceStub(connection)
        for deal, cards in deals(referee.TakeAdversaryDeal, reveal.TakeAdversaryDealRequest):
            LOG.info("deal %s: %s on %d public rows", deal.deal_id, deal.attack, len(cards["labels"]))
            test = loss_test(
                lambda features, deal_id=deal.deal_id: predict(models, deal_id, features),  # type: ignore[misc]
                cards["features"].astype(np.float64, copy=False),
                cards["labels"].astype(np.uint8, copy=False),
                deal.disadvantaged_rows,
            )
            referee.SubmitLossTest(
                reveal.SubmitLossTestRequest(
                    deal_id=deal.deal_id,
                    accuracy_advantaged=test.accuracy_advantaged,
                    accuracy_disadvantaged=test.accuracy_disadvantaged,
                ),
                timeout=CALL_SECONDS,
            )


def play_training(seat: Seat) -> None:
    """Guess which canaries the released model was trained on, in every trial that has canaries."""
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


def guess(scores: Floats, labels: Bytes) -> Bytes:
    """Guess which canaries were training rows: 1 for the best-fitted third, 0 for the worst, else `NO_GUESS`.

    Abstaining on the middle third gives a stronger proof (Steinke, Nasr and Jagielski, NeurIPS 2023).
    """
    fit = np.where(labels == 1, scores, 1 - scores)
    guesses = np.full(len(fit), NO_GUESS, np.uint8)
    order, third = np.argsort(fit, kind="stable"), -(-len(fit) // 3)
    guesses[order[:third]] = 0
    guesses[order[len(fit) - third :]] = 1
    return guesses


def play_wash(seat: Seat) -> None:
    """Query the deployed model as a customer, and report its decisions, in every trial that has rows to check."""
    referee = WashServiceStub(seat.referee)
    with seat.reach("developer") as connection:
        models = ModelServiceStub(connection)
        for deal, cards in deals(referee.TakeCheckDeal, wash.TakeCheckDealRequest):
            scores = predict(models, deal.deal_id, cards["features"].astype(np.float64, copy=False))
            seen = reported(scores, deal.wrong, deal.seed)
            referee.SubmitSighting(
                wash.SubmitSightingRequest(deal_id=deal.deal_id, seen=to_message(seen)), timeout=CALL_SECONDS
            )


def reported(scores: Floats, wrong: float, seed: bytes) -> Bytes:
    """Return a model's decisions, (rows,), each flipped with probability `wrong`, drawn from the customer's seed."""
    mistaken = generator(seed).random(len(scores)) < wrong
    return ((scores >= 0.5) ^ mistaken).astype(np.uint8)
