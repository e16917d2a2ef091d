"""The developer in the inference game: it trains models on the groups that it is told to, and releases them."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from developer.service import Released
from fairwall.game.v1 import inference_service_pb2 as inference
from fairwall.game.v1.inference_service_pb2_grpc import InferenceServiceStub
from fairwall.learning.defences import DEFENCES, Split
from fairwall.learning.ensemble import Ensemble
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import deals, generator
from fairwall.wire.training import settings_of

LOG = logging.getLogger(__name__)

MEMBERS_MOST = 2000
"""How many of its own rows the developer says its models' scores of."""

SUBMIT_SECONDS = 300.0


def play(referee: InferenceServiceStub, released: MutableMapping[str, Released]) -> None:
    """Play every trial of a run.

    Parameters
    ----------
    referee : InferenceServiceStub
    released : mutable mapping of str to Released
        Gets each deal's models; ModelService answers from it.
    """
    takes = deals(
        lambda last: referee.TakeTrainingDeal(
            inference.TakeTrainingDealRequest(after_deal_id=last), timeout=CALL_SECONDS
        )
    )
    for deal, cards in takes:
        bits = cards["bits"].astype(np.uint8, copy=False)
        split = Split(
            cards["features"].astype(np.float64, copy=False),
            cards["labels"].astype(np.uint8, copy=False),
            cards["groups"].astype(np.uint8, copy=False),
        )
        LOG.info("deal %s: %d models, defence %s", deal.deal_id, len(bits), deal.training.defence)
        seeds = generator(deal.seed).integers(2**62, size=len(bits)).tolist()
        settings = settings_of(deal.training)
        base = DEFENCES["none"](split, bits, seeds, settings)
        models = base
        if deal.training.defence != "none":
            models = DEFENCES[deal.training.defence](split, bits, seeds, settings)
        test, members = cards["test_features"], split.features[:MEMBERS_MOST]
        released.clear()
        first, *others = (partial(_score, models.take([k])) for k in range(models.models))
        released[deal.deal_id] = Released(first, split.features.shape[1], tuple(others))
        referee.SubmitModels(
            inference.SubmitModelsRequest(
                deal_id=deal.deal_id,
                scores=to_message(models.scores(test).astype(np.float32)),
                base_scores=to_message(base.scores(test).astype(np.float32)),
                member_scores=to_message(models.scores(members).astype(np.float32)),
                base_member_scores=to_message(base.scores(members).astype(np.float32)),
            ),
            timeout=SUBMIT_SECONDS,
        )


def _score(model: Ensemble, features: NDArray[np.float64]) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = model.scores(features)[0]
    return scores
