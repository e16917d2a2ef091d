"""Outcome of a disclosure trial: the parties' submissions, as the dealer took them or as a transcript records them."""

from __future__ import annotations

from dataclasses import dataclass

from developer.disclosure.belief import SecretBelief
from fairwall.game.v1 import disclosure_service_pb2 as disclosure
from sim.games.disclosure.deal import DisclosureDeal, deal
from sim.games.disclosure.scenario import DisclosureScenario
from sim.games.recorded import drawn_again, report_of, submission_of
from sim.games.submissions import AuditReport
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class DisclosureOutcome:
    """The developer's belief about the secret, and compliance's report."""

    belief: SecretBelief
    report: AuditReport


def from_messages(
    cell: Cell[DisclosureScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[DisclosureDeal, DisclosureOutcome]:
    """Return a trial's deal, drawn again, and its outcome from the messages; NotRecorded where a value is missing."""
    request = submission_of(trial, "SubmitPosterior")
    dealt = drawn_again(
        deal,
        *(cell, number, trial, secret),
        lambda dealt: {"study_cells": dealt.study.cells, "study_answers": dealt.study.answers},
    )
    return dealt, DisclosureOutcome(belief_of(request), report_of(trial))


def belief_of(request: disclosure.SubmitPosteriorRequest) -> SecretBelief:
    """Decode the developer's belief."""
    record = request.record if request.HasField("record") else None
    return SecretBelief(request.posterior, request.guess, record, request.candidates)
