"""The findings of ``fairwall verify``, each with the message that it is about."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sim.transcripts.files import FOLDER, Transcript
from sim.verify.check import verify
from sim.verify.finding import VerifyFinding
from sim.viewer.reel import Places, Where

_ENTRY = re.compile(rf"{FOLDER}/([\w-]+)/([\w-]+)\.bin entry (\d+)")
_DEAL = re.compile(r"\bdeal-\d+\b")


def checked(folder: Path, scripts: Sequence[Transcript], places: Places, trials: Mapping[str, str]) -> dict[str, Any]:
    """Return a run's checks, except of its report, with each finding's message; ``trials`` has trial names by deal."""
    found = verify(folder, scripts=scripts, page=False)
    return {
        "findings": [
            {"check": one.check, "where": one.where, "text": one.text, "at": _at(one, places, trials)}
            for one in found.findings
        ],
        "notes": [*found.notes, "not checked here: whether report.html is what would be written now"],
        "messages": found.messages,
        "columns": found.columns,
    }


def _at(finding: VerifyFinding, places: Places, trials: Mapping[str, str]) -> Where | None:
    entry = _ENTRY.search(finding.where)
    if entry is not None:
        party, session, number = entry.groups()
        return places.at(session, party, int(number))
    deal = _DEAL.search(f"{finding.where} {finding.text}")
    return Where(trials[deal.group()], 1) if deal is not None and deal.group() in trials else None
