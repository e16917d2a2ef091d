"""A run's folder: the scenario as played, a line a trial, and what the lines come to."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from blake3 import blake3

import fairwall
from sim.transcripts import files
from sim.games.inference import record
from sim.scenarios.sweep import Cell, Sweep
from sim.scenarios.scenario import as_values

_MEANS = (
    "leakage",
    "baseline_leakage",
    "recovered",
    "query_error_mean",
    "accuracy_base",
    "accuracy_models",
    "accuracy_models_least",
    "answers_bound",
    "leakage_features",
    "leakage_answers",
    "flagged",
    "max_prediction_change",
    "leakage_by_size",
    "leakage_by_person",
    "gap_base",
)


TrialLines = list[dict[str, Any]]
"""The lines of one trial: of the inference game one for each attack, else a single one."""


class ResumeError(ValueError):
    """A run that cannot be gone on with. Its text is one line that says why."""


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, and the run's id: the folder's first name, whatever it is called since."""

    path: Path
    run: str

    @classmethod
    def create(cls, parent: Path, name: str) -> RunFolder:
        """Make a new folder, named by time and scenario.

        Raises
        ------
        OSError
            If it cannot be made.
        """
        now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-") or "run"
        path = parent / f"{now}-{slug[:40]}-{secrets.token_hex(2)}"
        (path / "logs").mkdir(parents=True)
        return cls(path, path.name)

    @classmethod
    def resume(cls, path: Path, sweep: Sweep) -> RunFolder:
        """Find the folder of a run that was broken off, to go on with it.

        Raises
        ------
        ResumeError
            If it is no run's folder, or what was played in it differs in anything from the sweep: results made under
            two configurations are never mixed.
        """
        try:
            recorded = json.loads((path / "result.json").read_bytes())
            kept = tomllib.loads((path / "scenario.toml").read_text(encoding="utf-8"))
        except OSError as error:
            missing = Path(str(error.filename)).name
            raise ResumeError(f"{path}: not a run's folder: {missing}: {error.strerror}") from None
        except ValueError as error:
            raise ResumeError(f"{path}: its scenario.toml or result.json cannot be read: {error}") from None
        if not isinstance(recorded, dict) or not isinstance(recorded.get("run"), str):
            raise ResumeError(f"{path}: its result.json does not say which run it is of: it cannot be gone on with")
        if recorded.get("version") != fairwall.__version__:
            raise ResumeError(
                f"{path}: was played by fairwall {recorded.get('version')}, this is {fairwall.__version__}"
            )
        if any(recorded.get(key) != value for key, value in _identity(sweep).items()):
            raise ResumeError(f"{path}: was played differently: {_difference(kept, as_values(sweep.scenario))}")
        return cls(path, recorded["run"])

    @property
    def logs(self) -> Path:
        """Where the parties' logs go."""
        return self.path / "logs"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from playing in the folder while the context lasts.

        The system lets go of it with the process, however that ends.

        Raises
        ------
        ResumeError
            If another process holds it.
        """
        # A file of its own, since those that are replaced would take a lock on them along.
        with (self.path / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ResumeError(f"{self.path}: another process is playing in it") from None
            yield

    def confinement(self) -> list[dict[str, Any]]:
        """Read what confined each party, for each time that parties were started in the folder."""
        try:
            return list(json.loads((self.path / "result.json").read_bytes()).get("confinement", []))
        except FileNotFoundError:
            return []

    def write_scenario(self, sweep: Sweep) -> None:
        """Keep the scenario as it is played."""
        _replace(self.path / "scenario.toml", tomli_w.dumps(as_values(sweep.scenario)))

    def add_trial(self, *lines: Mapping[str, Any]) -> None:
        """Append one trial to ``trials.jsonl``: it is kept whatever becomes of the run."""
        text = _text(lines)
        with (self.path / "trials.jsonl").open("a", encoding="utf-8") as file:
            file.write(text)

    def add_fault(self, fault: Mapping[str, Any]) -> None:
        """Append a fault to ``faults.jsonl``, before it happens: whoever goes on with the run has it behind."""
        with (self.path / "faults.jsonl").open("a", encoding="utf-8") as file:
            file.write(_text([fault]))

    def faults(self) -> list[dict[str, Any]]:
        """Read which faults have happened on purpose."""
        path = self.path / "faults.jsonl"
        return _whole_lines(path.read_bytes()) if path.exists() else []

    def settle(self, sweep: Sweep) -> dict[int, TrialLines]:
        """Make ``trials.jsonl`` hold the sweep's finished trials alone, in the order in which they are scheduled.

        A trial whose lines are not all there, or cut off, counts as not played.

        Returns
        -------
        dict of int to list of dict
            The lines of each finished trial, by its number in the run, in order.
        """
        path = self.path / "trials.jsonl"
        before = path.read_bytes() if path.exists() else b""
        finished = _finished(sweep, _whole_lines(before))
        after = "".join(map(_text, finished.values()))
        if after.encode() != before:
            _replace(path, after)
        return finished

    def write_result(
        self,
        sweep: Sweep,
        trials: Sequence[Mapping[str, Any]],
        *,
        complete: bool,
        anchored: bool = True,
        confinement: Sequence[Mapping[str, Any]] = (),
    ) -> dict[str, Any]:
        """Write ``result.json``: what was played, by which version, whether to its end, and the summary.

        And what confined each party, for each time that parties were started, and which faults there were on purpose.
        Anchored, as when nobody plays any more, it also holds the end of each transcript and the digest of every file.
        """
        result = {
            "run": self.run,
            "scenario": sweep.scenario.scenario.name,
            **_identity(sweep),
            "version": fairwall.__version__,
            "complete": complete,
            "summary": summarise(trials, list(sweep.scenario.axes)),
            "confinement": list(confinement),
            **({"faults": self.faults()} if sweep.scenario.faults is not None else {}),
            "transcripts": files.anchors(self.path) if anchored else {},
            "files": digests(self.path) if anchored else {},
        }
        _replace(self.path / "result.json", json.dumps(result, indent=2, allow_nan=False) + "\n")
        return result


def digests(folder: Path) -> dict[str, str]:
    """Give the digest of each of a run's files as it is stored: BLAKE3, in hexadecimal.

    Left out are what may be written again afterwards, the result itself and the report, and the lock.
    """
    names = ("scenario.toml", "trials.jsonl", "faults.jsonl")
    kept = (*(folder / name for name in names), *folder.glob("logs/*"), *folder.glob("transcript/*/*"))
    return {
        path.relative_to(folder).as_posix(): blake3(max_threads=1).update_mmap(path).hexdigest()
        for path in sorted(kept)
        if path.is_file()
    }


def read_trials(path: Path) -> list[dict[str, Any]]:
    """Read a run's ``trials.jsonl``; a line that was cut off in the middle is no trial."""
    return _whole_lines(path.read_bytes())


def schedule(sweep: Sweep) -> Iterator[tuple[Cell, int, int]]:
    """List the trials in the order they are played, each with its number within its cell and within the run."""
    number = 0
    for cell in sweep.cells:
        for trial in range(cell.scenario.scenario.trials):
            number += 1
            yield cell, trial, number


def _finished(sweep: Sweep, lines: Iterable[dict[str, Any]]) -> dict[int, TrialLines]:
    kept: dict[str, TrialLines] = {}
    for line in lines:
        of = [line.get(key) for key in ("trial", "seed", *sweep.scenario.axes)]
        kept.setdefault(json.dumps(of), []).append(line)
    finished = {}
    for cell, trial, number in schedule(sweep):
        scenario = cell.scenario
        found = kept.get(json.dumps([trial, scenario.scenario.seed + trial, *cell.swept.values()]), [])
        attacks = list(scenario.adversary.attack)
        infers = scenario.scenario.game == "inference"
        if [line.get("attack") for line in found] == attacks if infers else len(found) == 1:
            finished[number] = found
    return finished


def _whole_lines(text: bytes) -> list[dict[str, Any]]:
    lines = []
    for line in text[: text.rfind(b"\n") + 1].split(b"\n"):
        # A process that was killed, or a disk that was full, may have left half a line behind.
        with contextlib.suppress(ValueError):
            values = json.loads(line)
            if isinstance(values, dict):
                lines.append(values)
    return lines


def _text(lines: Iterable[Mapping[str, Any]]) -> str:
    return "".join(json.dumps(line, allow_nan=False) + "\n" for line in lines)


def _replace(path: Path, text: str) -> None:
    """Write a file anew: whoever looks, whenever the process ends, finds the old text or the new one."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def _identity(sweep: Sweep) -> dict[str, Any]:
    """Say what a sweep plays, by what two runs of the same sweep have in common; the digest leaves the seed out."""
    return {
        "scenario_digest": sweep.digest,
        "seed": sweep.scenario.scenario.seed,
        "cells": [dict(cell.swept) for cell in sweep.cells],
    }


def _difference(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
    """Name the keys of two scenarios that differ, with what each was and is to be."""
    before, now = _flat(kept), _flat(asked)
    keys = [key for key in dict.fromkeys([*now, *before]) if before.get(key) != now.get(key)]
    return "; ".join(f"{key} was {_short(before.get(key))}, not {_short(now.get(key))}" for key in keys) or (
        "its scenario.toml is not what its result.json is of"
    )


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    return {
        f"{section}.{key}" if isinstance(fields, dict) else section: value
        for section, fields in values.items()
        for key, value in (fields.items() if isinstance(fields, dict) else [("", fields)])
    }


def _short(value: Any) -> str:
    text = "unset" if value is None else json.dumps(value, default=str)
    return text if len(text) <= 40 else f"{text[:39]}…"


def summarise(trials: Iterable[Mapping[str, Any]], swept: Sequence[str]) -> list[dict[str, Any]]:
    """Sum up each cell of a sweep, from the lines of ``trials.jsonl`` alone.

    Parameters
    ----------
    trials : iterable of mapping
    swept : sequence of str
        The dotted keys that tell the cells apart.

    Returns
    -------
    list of dict
        One a cell, in the order of the first trials: the swept values; ``trials``; the mean over trials of what is
        named alike in a trial; ``leakage_sd`` (of a single trial, n - 1 in the denominator; None for one trial);
        ``exact``, how many trials were; ``answers`` and ``answers_most``, how many answers a trial took, size queries
        counted, their mean and the most; ``targeted_rate`` with ``targeted_low`` and ``targeted_high``, the share of
        those aimed at who were guessed right, with its 95% interval, where a trial aims at one person, and
        ``targeted_balanced``, the mean of either group's share;
        ``query_error_median``, the median over trials; ``epsilon_spent``. What no trial has is left out: there is no
        error of answers that are choices, or that were all refused.
    """
    cells: dict[str, list[Mapping[str, Any]]] = {}
    for trial in trials:
        # In the inference game a trial has a line for each attack.
        of = trial["attack"] if trial["game"] == "inference" else None
        cells.setdefault(json.dumps([of, *(trial[key] for key in swept)]), []).append(trial)
    return [
        record.summarise(lines, swept) if lines[0]["game"] == "inference" else _summarise_cell(lines, swept)
        for lines in cells.values()
    ]


def share_interval(successes: int, trials: int) -> tuple[float, float]:
    """Give the 95% interval of a share, by Clopper and Pearson: it holds for any share and any number of trials."""
    from scipy.special import betaincinv

    missed = trials - successes
    low = float(betaincinv(successes, missed + 1, 0.025)) if successes else 0.0
    high = float(betaincinv(successes + 1, missed, 0.975)) if missed else 1.0
    return low, high


def _summarise_cell(lines: Sequence[Mapping[str, Any]], swept: Sequence[str]) -> dict[str, Any]:
    first = lines[0]
    cell: dict[str, Any] = {key: first[key] for key in swept}
    cell |= {key: first[key] for key in ("metric", "mechanism", "epsilon", "strategy", "decoder", "queries")}
    cell["trials"] = len(lines)
    for key in _MEANS:
        values = [line[key] for line in lines if line.get(key) is not None]
        if values:
            cell[key] = float(np.mean(values))
    cell["leakage_sd"] = float(np.std([line["leakage"] for line in lines], ddof=1)) if len(lines) > 1 else None
    cell["exact"] = sum(line["exact"] for line in lines)
    answers = [line["queries"] + line["size_queries"] for line in lines]
    cell["answers"], cell["answers_most"] = float(np.mean(answers)), max(answers)
    if all(line["targeted"] == 1 for line in lines):
        right = sum(line["targeted_recovered"] for line in lines)
        cell["targeted_rate"] = right / len(lines)
        cell["targeted_low"], cell["targeted_high"] = share_interval(right, len(lines))
        groups = [
            [x["targeted_recovered"] for x in lines if x["target_advantaged"] is group] for group in (True, False)
        ]
        if all(groups):
            cell["targeted_balanced"] = float(np.mean([np.mean(hits) for hits in groups]))
    medians = [line["query_error_median"] for line in lines if line["query_error_median"] is not None]
    if medians:
        cell["query_error_median"] = float(np.median(medians))
    cell["n"] = first["n"]
    cell["n0"] = float(np.mean([line["n0"] for line in lines]))
    cell["epsilon_spent"] = first["epsilon_spent"]
    return cell
