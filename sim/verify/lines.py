"""Checks the lines of ``trials.jsonl`` against the messages of each trial."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fairwall.errors import UserError
from sim.games import GAMES
from sim.games import read as read_sweep
from sim.games.submissions import NotRecorded
from sim.runs.folder import RunFolder
from sim.runs.trials import WHOLE, Shard, alike, key_of, read_trials, schedule, trial_key, written
from sim.scenarios.sweep import Cell, Sweep
from sim.transcripts.findings import UNFIT, Findings
from sim.transcripts.messages import TrialMessages
from sim.verify.run_files import result_of


class Lines:
    """Recomputes each trial's lines and compares them with the recorded ones.

    ``secret`` is the source of the run's draws; ``complete`` if the result says that every trial was played.
    """

    def __init__(
        self,
        findings: Findings,
        sweep: Sweep,
        lines: Iterable[dict[str, Any]],
        secret: bytes,
        *,
        complete: bool,
        shard: Shard = WHOLE,
    ) -> None:
        self._findings = findings
        self._complete = complete
        self.game = GAMES[sweep.game]
        self._secret = secret
        self._left: dict[str, list[dict[str, Any]]] = {}
        for line in lines:
            self._left.setdefault(key_of(line, sweep.scenario.axes), []).append(line)
        self._turns = {f"deal-{position}": (cell, number) for cell, number, position in shard.turns(schedule(sweep))}

    def compare(self, trial: TrialMessages) -> None:
        """Compare the lines of a trial, once per trial."""
        findings, deal_id = self._findings, trial.deal_id
        turn = self._turns.pop(deal_id, None)
        if turn is None:
            findings.not_checked(f"{deal_id}: there is no such trial in the scenario")
            return
        cell, number = turn
        kept, name = self._take(cell, number), f"trial {number} ({deal_id})"
        if not kept:
            if self._complete:
                self._missing(name)
            else:
                findings.not_checked("trials that have no line in trials.jsonl")
            return
        try:
            dealt, outcome = self.game.outcome(cell, number, trial, self._secret)
            if self.game.told is not None:
                self.game.told(findings, trial, dealt, outcome)
            again = [written(cell, number, line, 0.0) for line in self.game.record(cell, number, dealt, outcome)]
        except NotRecorded as why:
            findings.not_checked(f"lines of trials.jsonl: {why}")
            return
        except UNFIT as error:
            findings.not_checked(f"{name} of trials.jsonl: its messages do not fit together: {error!r}")
            return
        findings.reports += len(again)
        if len(kept) != len(again):
            findings.wrong("trials.jsonl", f"{name} has {len(kept)} lines, recomputed {len(again)}")
        tolerance = self.game.tolerance
        for line, other in zip(kept, json.loads(json.dumps(again)), strict=False):
            for key in sorted((line.keys() | other.keys()) - {"seconds"}):
                if key not in line:
                    findings.wrong("trials.jsonl", f"{name}: {key} is not there, recomputed {other[key]!r}")
                elif key not in other:
                    findings.wrong("trials.jsonl", f"{name}: {key} is {line[key]!r}, and follows from nothing")
                elif not alike(line[key], other[key], tolerance, tolerance):
                    findings.wrong("trials.jsonl", f"{name}: {key} is {line[key]!r}, recomputed {other[key]!r}")

    def close(self, *, whole: bool) -> None:
        """Report lines without a trial, and trials without a line; ``whole`` if the referee's record is complete."""
        for deal_id, (cell, number) in self._turns.items():
            kept, name = self._take(cell, number), f"trial {number} ({deal_id})"
            if kept and whole:
                self._findings.wrong("trials.jsonl", f"{name} was dealt to nobody")
            elif kept:
                self._findings.not_checked("lines of trials.jsonl whose trial is in no transcript")
            elif self._complete:
                self._missing(name)
        for lines in self._left.values():
            text = f"trial {lines[0].get('trial')}: there is no such trial in the scenario"
            self._findings.wrong("trials.jsonl", text)

    def _take(self, cell: Cell, number: int) -> list[dict[str, Any]]:
        return self._left.pop(trial_key(cell, number), [])

    def _missing(self, name: str) -> None:
        self._findings.wrong("trials.jsonl", f"{name} is not there, and the run was played to its end")


def read_lines(findings: Findings, folder: Path) -> Lines | None:
    """Return the lines of a run; None if its scenario cannot be read."""
    try:
        sweep = read_sweep(str(folder / "scenario.toml"))
        played = RunFolder(folder, folder.name)
        secret = played.secret(sweep)
    except UserError as error:
        findings.not_checked(f"trials.jsonl: {error}")
        return None
    lines = read_trials(folder / "trials.jsonl")
    return Lines(
        findings, sweep, lines, secret, complete=bool((result_of(folder) or {}).get("complete")), shard=played.shard()
    )
