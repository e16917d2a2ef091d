"""What came of a trial of the washing game, as the dealer took it or as a transcript tells it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.games.wash import Verdict
from fairwall.game.v1 import wash_service_pb2 as wire
from fairwall.tables.errors import DataError
from sim.games.cards import DealError
from sim.games.recorded import NotRecorded, bits_of, cards_of, floats_of, report_of, submission_of
from sim.games.submissions import AuditReport
from sim.games.wash.deal import WashDeal, deal
from sim.games.wash.scenario import WashScenario
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class WashOutcome:
    """What the developer showed, deployed and believed, each (n,), and what compliance concluded and reports."""

    shown: NDArray[np.uint8]
    deployed: NDArray[np.uint8]
    belief: NDArray[np.float64]
    verdict: Verdict
    report: AuditReport

    @classmethod
    def of(cls, request: wire.SubmitWashRequest, verdict: Verdict, report: AuditReport) -> WashOutcome:
        """Read what the developer submitted."""
        return cls(bits_of(request.shown), bits_of(request.deployed), floats_of(request.belief), verdict, report)


def from_messages(
    cell: Cell[WashScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[WashDeal, WashOutcome]:
    """Find in a trial's messages what came of it; what was dealt is drawn again, and is what the messages hold.

    Raises
    ------
    NotRecorded
        If something that is needed is in no message, or the table is not what it was.
    """
    cards, request = cards_of(trial, "ComplianceDeal"), submission_of(trial, "SubmitWash")
    told = submission_of(trial, "SubmitVerdict")
    try:
        dealt = deal(cell, number, trial.deal_id, secret)
    except (DealError, DataError) as error:
        raise NotRecorded(f"which rows are checked cannot be drawn again: {error}") from None
    if not np.array_equal(cards["protected"], dealt.compliance.protected):
        raise NotRecorded("the table is not what it was")
    verdict = Verdict(told.contradictions, told.broken, told.accused)
    return dealt, WashOutcome.of(request, verdict, report_of(trial))
