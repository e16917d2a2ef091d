"""The files of a run, as they are stored, against what ``result.json`` says of them, and the chains in transcripts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sim.games import read as read_sweep
from sim.runs.folder import digests
from sim.runs.trials import read_trials, summarise
from sim.transcripts.files import Transcript, anchors
from sim.verify.finding import Finding


def changed_files(folder: Path) -> Iterator[Finding]:
    """Compare every file, and the end of every chain, with ``result.json``."""
    try:
        result = json.loads((folder / "result.json").read_bytes())
        kept, ends = result["files"], result["transcripts"]
        summary = result["summary"]
    except FileNotFoundError:
        yield Finding("file", "result.json", "is missing: the run was broken off, and nothing says how its files ended")
        return
    except (ValueError, KeyError, TypeError, IndexError):
        yield Finding("file", "result.json", "cannot be read")
        return
    if not kept:
        yield Finding("file", "result.json", "says not how the files ended: the run is going on, or was killed")
        return
    yield from _compared(kept, digests(folder), "file", lambda name: name, "is not what it was when the run ended")
    yield from _compared(
        ends, anchors(folder), "chain", lambda name: f"transcript/{name}.bin", "does not end as the run says"
    )
    try:
        again = summarise(read_sweep(str(folder / "scenario.toml")), read_trials(folder / "trials.jsonl"))
    except (LookupError, TypeError, ValueError, ArithmeticError):
        yield Finding("file", "trials.jsonl", "holds lines that cannot be summed up")
    else:
        if json.loads(json.dumps(again)) != summary:
            yield Finding("file", "result.json", "sums up other trials than trials.jsonl holds")
    if result["complete"] is not True:
        yield Finding("open", "result.json", "the run was not played to its end")


def _compared(
    said: Mapping[str, Any], there: Mapping[str, Any], check: str, place: Any, text: str
) -> Iterator[Finding]:
    for name in sorted(said.keys() | there.keys()):
        if name not in there:
            yield Finding(check, place(name), "is gone")
        elif name not in said:
            yield Finding(check, place(name), "was not there when the run ended")
        elif said[name] != there[name]:
            yield Finding(check, place(name), text)


def broken_chains(scripts: Iterable[Transcript]) -> Iterator[Finding]:
    """Tell which entries do not follow on, and which transcripts break off."""
    digests_said: dict[str, set[str]] = {}
    for script in scripts:
        for problem in script.problems:
            yield Finding("chain", script.place(problem.entry), problem.text)
        if not script.closed:
            rest = f", and {script.cut_off} bytes of another" if script.cut_off else ""
            text = f"breaks off after {script.entries} entries{rest}: it was killed, or the end is cut off"
            yield Finding("open", script.place(), text)
        if script.header is not None:
            digests_said.setdefault(script.header.scenario_digest, set()).add(script.party)
    if len(digests_said) > 1:
        text = "were written for different scenarios"
        yield Finding(
            "chain", "transcript", "; ".join(", ".join(sorted(who)) for who in digests_said.values()) + f": {text}"
        )
