"""Compares a run's stored files with ``result.json``, and transcripts with its scenario and confinement."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import fairwall
from fairwall.errors import UserError
from sim.games import read as read_sweep
from sim.runs.folder import RunFolder, digests
from sim.runs.trials import read_trials, summarise
from sim.transcripts.calls import all_calls
from sim.transcripts.files import Transcript, anchors
from sim.transcripts.methods import DEALS
from sim.verify.finding import VerifyFinding


def changed_files(folder: Path) -> Iterator[VerifyFinding]:
    """Compare every file, and the end of every chain, with ``result.json``."""
    try:
        result = json.loads((folder / "result.json").read_bytes())
        kept, ends = result["files"], result["transcripts"]
        summary = result["summary"]
    except FileNotFoundError:
        yield VerifyFinding(
            "file", "result.json", "is missing: the run was broken off, and nothing says how its files ended"
        )
        return
    except (ValueError, KeyError, TypeError, IndexError):
        yield VerifyFinding("file", "result.json", "cannot be read")
        return
    if not kept:
        yield VerifyFinding("file", "result.json", "says not how the files ended: the run is going on, or was killed")
        return
    yield from _compared(kept, digests(folder), "file", lambda name: name, "is not what it was when the run ended")
    yield from _compared(
        ends, anchors(folder), "chain", lambda name: f"transcript/{name}.bin", "does not end as the run says"
    )
    try:
        again = summarise(read_sweep(str(folder / "scenario.toml")), read_trials(folder / "trials.jsonl"))
    except UserError:
        pass  # the scenario cannot be read, which is noted with the lines of trials
    except (LookupError, TypeError, ValueError, ArithmeticError):
        yield VerifyFinding("file", "trials.jsonl", "holds lines that cannot be summed up")
    else:
        if json.loads(json.dumps(again)) != summary:
            yield VerifyFinding("file", "result.json", "sums up other trials than trials.jsonl holds")
    if result.get("complete") is not True:
        yield VerifyFinding("open", "result.json", "the run was not played to its end")


def _compared(
    recorded: Mapping[str, Any], there: Mapping[str, Any], check: str, place: Any, text: str
) -> Iterator[VerifyFinding]:
    for name in sorted(recorded.keys() | there.keys()):
        if name not in there:
            yield VerifyFinding(check, place(name), "is gone")
        elif name not in recorded:
            yield VerifyFinding(check, place(name), "was not there when the run ended")
        elif recorded[name] != there[name]:
            yield VerifyFinding(check, place(name), text)


_ALIKE = {"scenario_digest": "for different scenarios", "run": "in different runs", "record": "in different ways"}
"""Header fields that all transcripts of a run share, with the words for a difference."""


def broken_chains(folder: Path, scripts: Sequence[Transcript]) -> Iterator[VerifyFinding]:
    """Find entries that break the chain, transcripts that break off, and transcripts of another run."""
    for script in scripts:
        for problem in script.problems:
            yield VerifyFinding("chain", script.place(problem.entry), problem.text)
        if not script.closed:
            rest = f", and {script.cut_off} bytes of another" if script.cut_off else ""
            text = f"breaks off after {script.entries} entries{rest}: it was killed, or the end is cut off"
            yield VerifyFinding("open", script.place(), text)
    result = result_of(folder) or {}
    run, version, record = result.get("run"), result.get("version"), _record_of(folder)
    parts = RunFolder(folder, folder.name).parts()
    runs: set[str] = set()
    modes: set[str] = set()
    # Each part of a merged run was a separate run: transcripts must agree only within a session.
    for own in _by_number(scripts) if parts else [scripts]:
        said = _said(own)
        for name, values in said.items():
            if len(values) > 1:
                who = "; ".join(", ".join(sorted(parties)) for parties in values.values())
                yield VerifyFinding("chain", "transcript", f"{who}: were written {_ALIKE[name]}")
        runs |= said["run"].keys()
        modes |= said["record"].keys()
    by = {script.versions["fairwall"] for script in scripts if "fairwall" in script.versions}
    if version is not None and by - {version}:
        text = f"was recorded by fairwall {', '.join(sorted(by))}, and result.json says {version}"
        yield VerifyFinding("chain", "transcript", text)
    if run is not None and runs - {run, *parts}:
        yield VerifyFinding("chain", "transcript", f"is of run {', '.join(sorted(runs))}, and result.json of {run}")
    if record is not None and modes - {record}:
        how = ", ".join(sorted(modes))
        yield VerifyFinding(
            "chain", "transcript", f'was recorded as "{how}", and scenario.toml says record = "{record}"'
        )


def _by_number(scripts: Sequence[Transcript]) -> list[list[Transcript]]:
    """Return the transcripts of each session."""
    sessions: dict[str, list[Transcript]] = {}
    for script in scripts:
        sessions.setdefault(script.number, []).append(script)
    return [*sessions.values()]


def _said(scripts: Sequence[Transcript]) -> dict[str, dict[str, set[str]]]:
    """Return the header fields of transcripts: by name and value, the parties."""
    said: dict[str, dict[str, set[str]]] = {name: {} for name in _ALIKE}
    for script in scripts:
        if script.header is not None:
            for name, values in said.items():
                values.setdefault(getattr(script.header, name), set()).add(script.party)
    return said


def result_of(folder: Path) -> dict[str, Any] | None:
    """Return ``result.json``; None if it is missing, malformed, or no object."""
    try:
        result = json.loads((folder / "result.json").read_bytes())
    except (FileNotFoundError, ValueError):
        return None
    return result if isinstance(result, dict) else None


def _record_of(folder: Path) -> str | None:
    """Return the scenario's mode of recording; None if it cannot be read."""
    try:
        record = tomllib.loads((folder / "scenario.toml").read_text(encoding="utf-8"))["scenario"]["record"]
    except (ValueError, LookupError, TypeError):
        return None
    return record if isinstance(record, str) else None


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


_Layers = list[dict[str, Any]]


def changed_confinement(
    folder: Path, sessions: Sequence[Mapping[str, Transcript]], notes: list[str]
) -> Iterator[VerifyFinding]:
    """Compare the layers of every start of the parties; ``notes`` gets what could not be compared."""
    result = result_of(folder)
    if result is None or not result.get("files"):
        return  # broken off, which is another finding
    starts = result.get("confinement")
    if not isinstance(starts, list) or not all(isinstance(start, dict) for start in starts):
        yield VerifyFinding("file", "result.json", "says not what confined the parties")
        return
    said = [{party: _layers(script) for party, script in session.items()} for session in sessions]
    if not any(layers for own in said for layers in own.values()):
        notes.append("not checked: what confined the parties, which their transcripts do not say")
        return

    @cache
    def fit(start: int, session: int) -> bool:
        """Return whether the starts from one on match the sessions from one on, in order."""
        if session == len(said):
            return start == len(starts)
        if start < len(starts) and _unlike(starts[start], said[session]) is None and fit(start + 1, session + 1):
            return True
        return not _was_played(sessions[session]) and fit(start, session + 1)

    if fit(0, 0):
        return
    texts = [text for start, own in zip(starts, said, strict=False) if (text := _unlike(start, own)) is not None]
    if len(starts) == len(said) and texts:
        yield VerifyFinding("reported", "result.json", f"confinement: {texts[0]}")
    else:
        text = f"confinement: parties were started {len(starts)} times, and their transcripts tell of {len(said)}"
        yield VerifyFinding("reported", "result.json", text + "".join(f"; {one}" for one in texts[:1]))


def _layers(script: Transcript) -> _Layers:
    layers = script.header.layers if script.header is not None else ()
    return [{"name": layer.name, "active": layer.active, "why_not": layer.why_not} for layer in layers]


def _unlike(start: Mapping[str, Any], recorded: Mapping[str, _Layers]) -> str | None:
    """Return the first difference between a session's transcripts and the result's start; None if there is none."""
    for party, own in recorded.items():
        if start.get(party) != own:
            return f"{party} was confined by {_written(start.get(party))}, and its transcript says {_written(own)}"
    return None


def _written(layers: Any) -> str:
    """Return layers on one line; malformed layers count as none."""
    try:
        return ", ".join(f"{one['name']}" + f" (not active: {one['why_not']})" * (not one["active"]) for one in layers)
    except (TypeError, KeyError):
        return "no layers"


def _was_played(session: Mapping[str, Transcript]) -> bool:
    """Return whether a deal was requested, and the referee lived to record the confinement.

    If a party died before it was ready, or the whole run was killed, there may be no record.
    """
    referee = session.get("referee")
    return referee is not None and referee.closed and any(call.method in DEALS for call in all_calls(referee))
