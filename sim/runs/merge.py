"""Merges the shards of one run into one folder, as if played there in as many sessions as the shards had."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairwall.errors import UserError
from fairwall.tables.people import LeftOut
from sim.games import read
from sim.runs.folder import RunFolder, difference, digests, identity, played
from sim.runs.trials import Shard, as_text, finished, ranges, read_trials, schedule
from sim.scenarios.scenario import as_values
from sim.scenarios.sweep import Sweep
from sim.transcripts.files import FOLDER, paths


class MergeError(UserError):
    """Folders that are not the shards of one run. Its text is one line with one folder and the reason."""


@dataclass(frozen=True)
class _Part:
    """A shard's folder and its result."""

    folder: RunFolder
    shard: Shard
    sweep: Sweep
    result: Mapping[str, Any]


def merge(folders: Sequence[Path], parent: Path) -> Path:
    """Merge all shards of one run, in any order, into a new folder within ``parent``; their folders stay unchanged.

    Transcripts and draws are copied under new numbers, logs into one folder per shard. Each shard was a run with an id
    and a key, by which its parties knew the scenario; ``result.json`` lists the ids, and ``keys`` has the keys.
    """
    parts = sorted(map(_opened, folders), key=lambda part: part.shard.number)
    if not parts:
        raise MergeError("no folders to merge")
    first = parts[0]
    for part, other in zip(parts[1:], parts, strict=False):
        _require_alike(first, part)
        if part.shard == other.shard:
            raise MergeError(f"{part.folder.path}: is shard {part.shard}, as {other.folder.path} is")
    sweep = first.sweep
    lines = [line for part in parts for line in read_trials(part.folder.path / "trials.jsonl")]
    there = finished(sweep, lines)
    missing = [number for _, _, number in schedule(sweep) if number not in there]
    if missing:
        absent = sorted({*range(1, first.shard.of + 1)} - {part.shard.number for part in parts})
        of = f": shard {ranges(absent)} of {first.shard.of} is not among them" if absent else ""
        raise MergeError(f"{len(missing)} trials are missing, {ranges(missing)}{of}")
    is_random = sweep.scenario.scenario.secret == "random"  # noqa: S105 - the name of a mode
    folder = RunFolder.create(parent, sweep.scenario.scenario.name, first.folder.key if is_random else None)
    try:
        _fill(folder, parts, sweep, lines)
    except BaseException:
        folder.discard()
        raise
    return folder.path


def _opened(path: Path) -> _Part:
    """Read a shard's folder, and check that it has not changed since the shard ended."""
    result, _ = played(path, MergeError)
    if "parts" in result:
        raise MergeError(f"{path}: was merged already: give the folders of its shards")
    if not result.get("files") or result.get("complete") is not True:
        raise MergeError(f"{path}: was not played to its end; `fairwall run ... --resume` plays what is missing")
    now = digests(path)
    for name, digest in result["files"].items():
        if now.get(name) != digest:
            raise MergeError(f"{path}: {name} is not what it was when the run ended")
    folder = RunFolder(path, result["run"])
    sweep = read(str(path / "scenario.toml"))
    if any(result.get(key) != value for key, value in identity(sweep).items()):
        raise MergeError(f"{path}: its scenario.toml is not what its result.json is of")
    if not folder.key:
        raise MergeError(f"{path}: its key is missing, the file secret")
    return _Part(folder, folder.shard(), sweep, result)


def _require_alike(first: _Part, part: _Part) -> None:
    """Raise MergeError for two folders that are not of one run."""
    here, there = part.folder.path, first.folder.path
    if identity(part.sweep) != identity(first.sweep):
        text = difference(as_values(first.sweep.scenario), as_values(part.sweep.scenario))
        raise MergeError(f"{here}: is of another scenario than {there}: {text}")
    if part.shard.of != first.shard.of:
        raise MergeError(f"{here}: is shard {part.shard}, and {there} is {first.shard}")
    if part.folder.programs() != first.folder.programs():
        raise MergeError(f"{here}: other programs played in it than in {there}")
    if part.folder.plugins() != first.folder.plugins():
        raise MergeError(f"{here}: other plug-ins played in it than in {there}")
    is_random = first.sweep.scenario.scenario.secret == "random"  # noqa: S105 - the name of a mode
    if is_random and part.folder.key != first.folder.key:
        raise MergeError(
            f"{here}: was drawn from another secret than {there}; shards of one run are played with one --secret"
        )


def _fill(folder: RunFolder, parts: Sequence[_Part], sweep: Sweep, lines: Sequence[Mapping[str, Any]]) -> None:
    folder.write_scenario(sweep)
    numbers = 0
    for part in parts:
        own = part.folder.path
        new = {old: numbers + at for at, old in enumerate(dict.fromkeys(path.stem for path in paths(own)), start=1)}
        numbers += len(new)
        for path in sorted((own / FOLDER).glob("*/*")):
            number, rest = path.name.split(".", 1)
            if number in new:
                to = folder.path / FOLDER / path.parent.name / f"{new[number]}.{rest}"
                to.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                shutil.copy(path, to)
        shutil.copytree(part.folder.logs, folder.logs / f"shard-{part.shard.number}")
        folder.keep_key_of(part.folder.run, part.folder.key)
    folder.add_trial(*lines)
    trials = [line for own in folder.settle(sweep).values() for line in own]
    faults = [fault for part in parts for fault in part.folder.faults()]
    if faults:
        (folder.path / "faults.jsonl").write_text(as_text(sorted(faults, key=lambda fault: fault["trial"])))
    left_out = dict.fromkeys(LeftOut(**rows) for part in parts for rows in part.result.get("left_out", ()))
    folder.write_result(
        sweep,
        trials,
        complete=True,
        confinement=[layers for part in parts for layers in part.result.get("confinement", ())],
        left_out=[*left_out],
        programs=parts[0].folder.programs(),
        parts=[{"run": part.folder.run, "shard": str(part.shard)} for part in parts],
    )
