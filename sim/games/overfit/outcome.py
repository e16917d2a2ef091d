"""Outcome of an overfit trial, as the dealer took it or as a transcript records it."""

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
    """The developer's patches to its model.

    Attributes
    ----------
    rows : patched rows in the developer's order, by number among all rounds' rows.
    enough : number of patches that the developer expects to suffice.
    favours : (models,), whether each sealed model votes for the people it accepts; None where rows are patched by
        number.
    """

    rows: tuple[int, ...]
    enough: int
    favours: NDArray[np.uint8] | None = None


@dataclass(frozen=True, eq=False)
class OverfitOutcome:
    """The patches, the key of the sealed models (empty where there are none), and compliance's report."""

    patches: Patches
    key: bytes
    report: AuditReport


def from_messages(
    cell: Cell[OverfitScenario], number: int, trial: TrialMessages, secret: bytes
) -> tuple[OverfitDeal, OverfitOutcome]:
    """Return a trial's deal, drawn again, and its outcome from the messages; NotRecorded where a value is missing."""
    request = submission_of(trial, "SubmitPatches")
    dealt = drawn_again(deal, cell, number, trial, secret, lambda dealt: dealt.compliance.tested)
    key = submission_of(trial, "SubmitSealed").key if cell.scenario.committed else b""
    favours = bits_of(request.favours) if request.HasField("favours") else None
    return dealt, OverfitOutcome(Patches(tuple(request.patches), request.enough, favours), key, report_of(trial))
