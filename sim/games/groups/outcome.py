"""What came of a trial of the game of groups, as the dealer took it or as a transcript tells it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fairwall.rpc.arrays import from_message
from sim.games.groups.deal import GroupsDeal, deal
from sim.games.groups.scenario import GroupsScenario
from sim.games.recorded import NotRecorded, cards_of, report_of, submission_of
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
    """Find in a trial's messages what came of it; what was dealt is drawn again, and is what the messages hold.

    Raises
    ------
    NotRecorded
        If something that is needed is in no message, or others' groups were dealt.
    """
    cards, request = cards_of(trial, "ComplianceDeal"), submission_of(trial, "SubmitGroups")
    dealt = deal(cell, number, trial.deal_id, secret)
    assert dealt.compliance.groups is not None, "this game's"
    if not np.array_equal(cards["groups"], dealt.compliance.groups.codes):
        raise NotRecorded("the groups are not those that are drawn")
    return dealt, GroupsOutcome(from_message(request.guess).astype(np.uint8), report_of(trial))
