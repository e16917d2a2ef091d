"""The developer in the disclosure game: it buys the study's table, and submits its belief about Alice."""

from __future__ import annotations

import logging

import numpy as np
from numpy.typing import NDArray

from developer.disclosure.belief import MODES, believe
from developer.service import Shelf
from fairwall.compliance.v1 import release_service_pb2 as wire
from fairwall.compliance.v1.release_service_pb2_grpc import ReleaseServiceStub
from fairwall.game.v1 import disclosure_service_pb2 as disclosure
from fairwall.game.v1.disclosure_service_pb2_grpc import DisclosureServiceStub
from fairwall.rpc.arrays import gathered
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals

LOG = logging.getLogger(__name__)


def play(seat: Seat, _shelf: Shelf) -> None:
    """Play every trial of a run."""
    referee = DisclosureServiceStub(seat.referee)
    with seat.reach("compliance") as connection:
        compliance = ReleaseServiceStub(connection)
        for deal, _ in deals(referee.TakeDisclosureDeal, disclosure.TakeDisclosureDealRequest):
            believed = believe(deal, _table(compliance, deal))
            LOG.info("deal %s: %s disclosure", deal.deal_id, MODES[deal.mode])
            referee.SubmitPosterior(
                disclosure.SubmitPosteriorRequest(
                    deal_id=deal.deal_id,
                    posterior=believed.posterior,
                    guess=believed.guess,
                    record=believed.record,
                    candidates=believed.candidates,
                ),
                timeout=CALL_SECONDS,
            )


def _table(compliance: ReleaseServiceStub, deal: disclosure.DisclosureDeal) -> NDArray[np.float64]:
    request = wire.TabulateRequest(request_id="table-1", deal_id=deal.deal_id, epsilon=deal.terms.epsilon)
    parts = iter(compliance.Tabulate(request, timeout=CALL_SECONDS))
    table = gathered(next(parts).header.table, (part.table_chunk for part in parts))
    return table.astype(np.float64, copy=False)
