"""The developer in the disclosure game: it buys the study's table, and submits its belief about Alice, by Bayes."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np

from developer.service import Shelf
from fairwall.arrays import Floats
from fairwall.compliance.v1 import release_service_pb2 as release
from fairwall.compliance.v1.release_service_pb2_grpc import ReleaseServiceStub
from fairwall.game.v1 import disclosure_service_pb2 as disclosure
from fairwall.game.v1.disclosure_service_pb2_grpc import DisclosureServiceStub
from fairwall.laws.studies.disclosure import PRIOR, PriorKnowledge, posterior
from fairwall.rpc.arrays import gathered
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import Seat, deals

LOG = logging.getLogger(__name__)

MODES = {
    disclosure.DISCLOSURE_MODE_IDENTITY: "identity",
    disclosure.DISCLOSURE_MODE_ATTRIBUTE: "attribute",
    disclosure.DISCLOSURE_MODE_INFERENTIAL: "inferential",
    disclosure.DISCLOSURE_MODE_PRESENCE: "presence",
}
"""The modes' names, by their numbers on the wire."""


@dataclass(frozen=True)
class SecretBelief:
    """P(the secret is 1), the resulting guess, the record taken for Alice's, and the number of candidate records."""

    posterior: float
    guess: bool
    record: int | None
    candidates: int


def known(deal: disclosure.DisclosureDeal) -> PriorKnowledge:
    """Return a deal's public prior knowledge."""
    return PriorKnowledge(
        MODES[deal.mode],
        deal.terms.epsilon,
        deal.others,
        deal.others_yes if deal.HasField("others_yes") else None,
        deal.takes_part if deal.HasField("takes_part") else None,
        deal.rate,
    )


def believe(deal: disclosure.DisclosureDeal, table: Floats) -> SecretBelief:
    """Return the belief given a release: (cells,) or, for records, (people, 2)."""
    if not deal.terms.records:
        believed = posterior(known(deal), float(table[deal.cell]))
        return SecretBelief(believed, believed >= PRIOR, None, 0)
    (alike,) = np.nonzero(table[:, 0] == deal.cell)
    believed = posterior(known(deal), float(table[alike, 1].sum()))
    # Records are in no order, so the first of the equal ones is as good as any.
    first = int(alike[0]) if deal.takes_part and len(alike) else None
    return SecretBelief(believed, believed >= PRIOR, first, len(alike) if first is not None else 0)


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


def _table(compliance: ReleaseServiceStub, deal: disclosure.DisclosureDeal) -> Floats:
    request = release.TabulateRequest(request_id="table-1", deal_id=deal.deal_id, epsilon=deal.terms.epsilon)
    parts = iter(compliance.Tabulate(request, timeout=CALL_SECONDS))
    table = gathered(next(parts).header.table, (part.table_chunk for part in parts))
    return table.astype(np.float64, copy=False)
