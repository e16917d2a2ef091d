"""What came of a trial of the overfit game, as the dealer took it or as a transcript tells it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sim.games.overfit.deal import OverfitDeal, deal
from sim.games.overfit.scenario import OverfitScenario
from sim.games.recorded import bits_of, drawn_again, report_of, submission_of
from sim.games.submissions import AuditReport
from sim.scenarios.sweep import Cell
from sim.transcripts.messages import TrialMessages


@dataclass(frozen=True, eq=False)
class Patches:
    """How the developer patches its model.

    Attributes
    ----------
    rows : the patched rows by number among all rounds' that were asked about, in the developer's order.
    enough : how many of these it takes to be enough.
    favours : (models,), of sealed models whether each votes for whom it accepts; None where rows are patched by number.
    """

    rows: tuple[int, ...]
    enough: int
    favours: NDArray[np.uint8] | None = None


@dataclass(frozen=True, eq=False)
class OverfitOutcome:
    """The patches, the key of the sealed models, empty where there are none, and compliance's report."""

    patches: Patches
    key: bytes
    report: AuditReport


def from_messages(
    cell: Cell[OverfitScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[OverfitDeal, OverfitOutcome]:
    """Find in a trial's messages what came of it; the deal is drawn again. NotRecorded where something is missing."""
    request = submission_of(trial, "SubmitPatches")
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: dealt.compliance.tested)
    key = submission_of(trial, "SubmitSealed").key if cell.scenario.committed else b""
    favours = bits_of(request.favours) if request.HasField("favours") else None
    return dealt, OverfitOutcome(Patches(tuple(request.patches), request.enough, favours), key, report_of(trial))
