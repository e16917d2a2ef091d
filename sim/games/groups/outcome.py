"""Outcome of a trial of the game of groups, as the dealer took it or as a transcript records it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.games.groups.deal import GroupsDeal, deal
from sim.games.groups.scenario import GroupsScenario
from sim.games.recorded import bits_of, drawn_again, report_of, submission_of
from sim.games.submissions import AuditReport
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class GroupsOutcome:
    """The developer's guess, shape (people,), and compliance's report."""

    guess: NDArray[np.uint8]
    report: AuditReport


def from_messages(
    cell: Cell[GroupsScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[GroupsDeal, GroupsOutcome]:
    """Return a trial's deal, drawn again, and its outcome from the messages; NotRecorded where a value is missing."""
    request = submission_of(trial, "SubmitGroups")
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: {"groups": dealt.groups.codes})
    return dealt, GroupsOutcome(bits_of(request.guess), report_of(trial))
