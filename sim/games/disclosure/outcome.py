"""What came of a disclosure trial: what its parties submitted, as the dealer took it or as a transcript tells it."""

from __future__ import annotations

from dataclasses import dataclass

from developer.disclosure.belief import Belief
from fairwall.game.v1 import disclosure_service_pb2 as disclosure
from sim.games.disclosure.deal import DisclosureDeal, deal
from sim.games.disclosure.scenario import DisclosureScenario
from sim.games.recorded import drawn_again, report_of, submission_of
from sim.games.submissions import AuditReport
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class DisclosureOutcome:
    """What the developer believes, and compliance's report."""

    belief: Belief
    report: AuditReport


def from_messages(
    cell: Cell[DisclosureScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[DisclosureDeal, DisclosureOutcome]:
    """Find in a trial's messages what came of it; the deal is drawn again. NotRecorded where something is missing."""
    request = submission_of(trial, "SubmitPosterior")
    dealt = drawn_again(
        deal,
        *(cell, number, trial, secret),
        lambda dealt: {"study_cells": dealt.study.cells, "study_answers": dealt.study.answers},
    )
    return dealt, DisclosureOutcome(belief_of(request), report_of(trial))


def belief_of(request: disclosure.SubmitPosteriorRequest) -> Belief:
    """Read what the developer believes."""
    record = request.record if request.HasField("record") else None
    return Belief(request.posterior, request.guess, record, request.candidates)
