"""The adversary in the inference game: it queries the released models, trains shadow models, and guesses the bits."""

from __future__ import annotations

import logging

import numpy as np

from adversary.attacks import ATTACKS
from adversary.attacks.attack import Form, ShadowEvidence
from adversary.client import predict
from adversary.inference.shadows import set_aside, train_shadows
from fairwall.developer.v1.model_service_pb2_grpc import ModelServiceStub
from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceStub
from fairwall.learning.defences import DEFENCES, TrainingSplit
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals
from fairwall.wire.training import settings_of

LOG = logging.getLogger(__name__)


def play(seat: Seat) -> None:
    """Attack the released models of every trial."""
    referee = InferenceServiceStub(seat.referee)
    with seat.reach("developer") as connection:
        models = ModelServiceStub(connection)
        for deal, cards in deals(referee.TakeAttackDeal, inference.TakeAttackDealRequest):
            own = TrainingSplit(
                cards["features"].astype(np.float64, copy=False),
                cards["labels"].astype(np.uint8, copy=False),
                cards["groups"].astype(np.uint8, copy=False),
            )
            seed = int.from_bytes(deal.seed, "big")
            probes = set_aside(own, deal.probes, seed)
            LOG.info("deal %s: %d models, %d probes", deal.deal_id, deal.models, len(probes.labels))
            answers = np.stack([predict(models, deal.deal_id, probes.features, k) for k in range(deal.models)])
            if any(ATTACKS[name].shadows for name in deal.attacks):
                defence = DEFENCES[deal.training.defence if deal.adapts else "none"]
                shadows = train_shadows(probes.rest, deal.shadows, seed, defence, settings_of(deal.training))
                evidence = shadows.evidence(probes)
            else:
                none = np.empty((0, len(probes.labels)))
                evidence = ShadowEvidence(probes.labels, probes.group, np.empty(0, np.uint8), none)
            form: Form = "labels" if deal.labels_only else "scores"
            guesses = np.stack([ATTACKS[name].guess(evidence, answers, form).bits for name in deal.attacks])
            referee.SubmitGuesses(
                inference.SubmitGuessesRequest(deal_id=deal.deal_id, guesses=to_message(guesses.astype(np.uint8))),
                timeout=CALL_SECONDS,
            )
