"""Outcome of a washing trial, as the dealer took it or as a transcript records it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compliance.games.wash import WashVerdict
from fairwall.game.v1 import wash_service_pb2 as wire
from sim.games.recorded import bits_of, drawn_again, floats_of, report_of, submission_of
from sim.games.submissions import AuditReport
from sim.games.wash.deal import WashDeal, deal
from sim.games.wash.scenario import WashScenario
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class WashOutcome:
    """The developer's shown and deployed decisions and its belief, each (n,), and compliance's verdict and report."""

    shown: NDArray[np.uint8]
    deployed: NDArray[np.uint8]
    belief: NDArray[np.float64]
    verdict: WashVerdict
    report: AuditReport

    @classmethod
    def of(cls, request: wire.SubmitWashRequest, verdict: WashVerdict, report: AuditReport) -> WashOutcome:
        """Decode the developer's submission."""
        return cls(bits_of(request.shown), bits_of(request.deployed), floats_of(request.belief), verdict, report)


def from_messages(
    cell: Cell[WashScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[WashDeal, WashOutcome]:
    """Return a trial's deal, drawn again, and its outcome from the messages; NotRecorded where a value is missing."""
    told, request = submission_of(trial, "SubmitVerdict"), submission_of(trial, "SubmitWash")
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: dealt.compliance.tested)
    verdict = WashVerdict(told.contradictions, told.broken, told.accused)
    return dealt, WashOutcome.of(request, verdict, report_of(trial))
