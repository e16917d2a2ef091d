"""The developer in the curator game: it has randomly drawn models audited, each with a nonce."""

from __future__ import annotations

import logging

import numpy as np

from developer.service import Shelf
from fairwall.client import gaps
from fairwall.game.v1 import curator_service_pb2 as wire
from fairwall.game.v1.curator_service_pb2_grpc import CuratorServiceStub
from fairwall.laws.studies.commitment import request_id
from fairwall.rpc.arrays import to_message
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals, generator

LOG = logging.getLogger(__name__)

METRIC = "sp"
_NONCE_BYTES = 16


def play(seat: Seat, _shelf: Shelf) -> None:
    """Play every trial of a run."""
    referee = CuratorServiceStub(seat.referee)
    with seat.reach("compliance") as connection:
        audits = gaps.Audits(connection)
        for deal, _ in deals(referee.TakeCuratorDeal, wire.TakeCuratorDealRequest):
            verdict = _verdict(referee, _asked(audits, deal))
            LOG.info("deal %s: %d requests, %s", deal.deal_id, deal.requests, wire.Verdict.Name(verdict))


def _asked(audits: gaps.Audits, deal: wire.CuratorDeal) -> wire.SubmitAnswersRequest:
    """Send all requests: each model accepts everybody by a fair coin."""
    rng = generator(deal.seed)
    models = rng.integers(2, size=(deal.requests, deal.people), dtype=np.uint8)
    ids = [request_id(f"audit-{number}", rng.bytes(_NONCE_BYTES)) for number in range(1, deal.requests + 1)]
    answers = [
        gaps.ask(audits, deal.deal_id, each, METRIC, model[np.newaxis], deal.epsilon).gaps[0]
        for each, model in zip(ids, models, strict=True)
    ]
    return wire.SubmitAnswersRequest(
        deal_id=deal.deal_id,
        request_ids=ids,
        predictions=to_message(models.astype(np.bool_)),
        answers=to_message(np.array(answers, np.float64)),
    )


def _verdict(referee: CuratorServiceStub, request: wire.SubmitAnswersRequest) -> wire.Verdict:
    """Submit the answers, and wait for the regulator's verdict."""
    while True:
        response: wire.SubmitAnswersResponse = referee.SubmitAnswers(request, timeout=CALL_SECONDS)
        if response.verdict != wire.VERDICT_UNSPECIFIED:
            return response.verdict
