"""Checks that the transcripts name the scenario of ``scenario.toml``, under the run's key."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import fairwall
from fairwall.errors import UserError
from sim.games import read as read_sweep
from sim.runs.folder import RunFolder
from sim.transcripts.files import Transcript
from sim.verify.finding import VerifyFinding


def misnamed(folder: Path, scripts: Iterable[Transcript]) -> Iterator[VerifyFinding]:
    """Compare the scenario's name in each transcript's header with the one that follows from the folder.

    No name follows, and other checks report it, if the run's key is missing or the scenario cannot be read; nor if
    another version of fairwall played the run, whose scenarios may have had other keys.
    """
    try:
        sweep = read_sweep(str(folder / "scenario.toml"))
    except UserError:
        return
    for script in scripts:
        if script.header is None or script.versions.get("fairwall") != fairwall.__version__:
            continue
        try:
            key = RunFolder(folder, folder.name).key_of(script.header.run)
        except UserError:
            continue
        if key and script.header.scenario_digest != sweep.name_for_parties(key):
            text = "was written for another scenario than scenario.toml, or under another key"
            yield VerifyFinding("file", script.place(), text)
