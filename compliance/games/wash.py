"""The washing game: audits of a test set, and a customer's sightings of the deployed model."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compliance.answers.accounts import Accounts
from compliance.answers.differencing import Detector
from compliance.games.audits import open_case, report_of
from compliance.games.trial import Around, Cards, OpenTrial
from fairwall.arrays import Bytes, Floats
from fairwall.game.v1 import referee_service_pb2 as game
from fairwall.game.v1 import wash_service_pb2 as wire
from fairwall.game.v1.wash_service_pb2_grpc import WashServiceStub
from fairwall.laws.studies.cheat_detection import least
from fairwall.rpc.channel import CALL_SECONDS
from fairwall.rpc.turns import deals
from fairwall.wire.commitment import opens
from fairwall.wire.queries import AUDITED


class _Kept(Detector):
    """A detector that keeps the decisions of the audited model, shape (people,); None before the audit."""

    decisions: Bytes | None = None

    def watch(self, request_id: str, models: Floats) -> None:
        super().watch(request_id, models)
        if request_id == AUDITED:
            self.decisions = decided(models[0])


def decided(scores: Floats) -> Bytes:
    """Return scores as decisions, whatever their shape."""
    return (scores >= 0.5).astype(np.uint8)


@dataclass(frozen=True)
class WashVerdict:
    """Compliance's conclusion: the number of rows that contradict the audit, a broken commitment, and an accusation."""

    contradictions: int
    broken: bool
    accused: bool


def judge(audited: Bytes | None, deal: wire.SightingDeal, seen: NDArray[Any]) -> WashVerdict:
    """Return the verdict from the audited decisions, the sightings and the commitment.

    Without an audit a required commitment counts as broken.

    `audited`: the decisions, shape (people,); None if there was no audit. `seen`: the customer's sightings of the
    deal's rows, shape (rows,).
    """
    broken = deal.committed and (audited is None or not opens(deal.commitment, audited, deal.salt))
    contradictions = 0 if audited is None else int((audited[list(deal.rows)] != seen).sum())
    enough = contradictions >= least(len(deal.rows), deal.wrong, deal.alarm)
    return WashVerdict(contradictions, broken, broken or enough)


def open_trial(deal: game.ComplianceDeal, cards: Cards, around: Around) -> OpenTrial:
    """Open the audits of a test set; when they are over, receive the customer's sightings and judge."""
    kept = _Kept(deal.audits.differencing)
    case = replace(open_case(deal, deal.audits, cards, draws=around.draws), detector=kept)
    referee = WashServiceStub(around.referee)

    def report() -> game.SubmitAuditReportRequest:
        sighting, arrays = next(deals(referee.TakeSightingDeal, wire.TakeSightingDealRequest))
        verdict = judge(kept.decisions, sighting, arrays["seen"])
        referee.SubmitVerdict(wire.SubmitVerdictRequest(deal_id=deal.deal_id, **vars(verdict)), timeout=CALL_SECONDS)
        return report_of(case)

    return OpenTrial(Accounts(audits={deal.deal_id: case}), report)
