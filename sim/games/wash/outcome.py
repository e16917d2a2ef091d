"""What came of a trial of the washing game, as the dealer took it or as a transcript tells it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.games.wash import Verdict
from fairwall.game.v1 import wash_service_pb2 as wire
from sim.games.recorded import bits_of, drawn_again, floats_of, report_of, submission_of
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
    """Find in a trial's messages what came of it; the deal is drawn again. NotRecorded where something is missing."""
    told, request = submission_of(trial, "SubmitVerdict"), submission_of(trial, "SubmitWash")
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: dealt.compliance.tested)
    verdict = Verdict(told.contradictions, told.broken, told.accused)
    return dealt, WashOutcome.of(request, verdict, report_of(trial))
