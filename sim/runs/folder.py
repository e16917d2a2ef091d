"""A run's folder: the scenario as played, a line a trial, and what the lines come to."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import tomli_w
from blake3 import blake3

import fairwall
from fairwall import toml
from fairwall.errors import UserError
from fairwall.plugins import named_in, require
from fairwall.tables.people import LeftOut
from sim.games.cards import WRITTEN_DOWN
from sim.runs.shard import WHOLE, Shard, ShardError
from sim.runs.tray import Tray
from sim.runs.trials import Lines, as_text, finished, summarise, whole_lines
from sim.scenarios.scenario import as_values
from sim.scenarios.sweep import Sweep, plugins_of
from sim.transcripts import files

_SECRET = "secret"  # noqa: S105 - a file's name
"""The file with the run's key. The owner alone may read it."""

_FAILURES = "failures.jsonl"

_KEYS = "keys"
"""The folder with the keys of the runs that one was merged from, by run."""

_KEY_BYTES = 32

T = TypeVar("T")

NONE: Mapping[str, str] = MappingProxyType({})
"""No programs but ours."""


class ResumeError(UserError):
    """A run that cannot be resumed. Its text is one line that says why."""


class KeyRefused(UserError):
    """A file that is no key for a run. Its text is one line that says why."""


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, and the run's id: the folder's first name, whatever it is called since.

    ``made`` are the folders above it that were made for it, the nearest first.
    """

    path: Path
    run: str
    made: tuple[Path, ...] = ()

    @classmethod
    def create(cls, parent: Path, name: str, key: bytes | None = None) -> RunFolder:
        """Make a new folder, named by time and scenario, of a run with a key that is given or drawn."""
        now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-") or "run"
        while (path := parent / f"{now}-{slug[:40]}-{secrets.token_hex(2)}").exists():
            pass  # two of one second may draw the same digits
        made = tuple(above for above in (parent, *parent.parents) if not above.exists())
        (path / "logs").mkdir(parents=True)
        folder = cls(path, path.name, made)
        folder.keep(key or secrets.token_bytes(_KEY_BYTES))
        return folder

    @classmethod
    def resume(cls, path: Path, sweep: Sweep, programs: Mapping[str, str] = NONE, shard: Shard = WHOLE) -> RunFolder:
        """Find the folder of a run that was interrupted, to resume it with the same programs in our parties' place."""
        recorded, kept = played(path, ResumeError)
        if any(recorded.get(key) != value for key, value in identity(sweep).items()):
            raise ResumeError(f"{path}: was played differently: {difference(kept, as_values(sweep.scenario))}")
        folder = cls(path, recorded["run"])
        require(folder.plugins())
        before = folder.programs()
        for party in sorted(before.keys() | programs.keys()):
            if before.get(party) != programs.get(party):
                raise ResumeError(
                    f"{path}: was played differently: --{party} was {_short(before.get(party))}, "
                    f"not {_short(programs.get(party))}"
                )
        if folder.shard() != shard:
            raise ResumeError(f"{path}: was played differently: --shard was {folder.shard()}, not {shard}")
        if not folder.key:
            raise ResumeError(f"{path / _SECRET}: is missing: without its key the run cannot be resumed")
        return folder

    def keep(self, key: bytes) -> None:
        """Write the run's key down, for its owner alone."""
        _write_key(self.path / _SECRET, key)

    @property
    def key(self) -> bytes:
        """The run's own 32 random bytes, which no party is ever dealt. See `read_key`."""
        return read_key(self.path / _SECRET)

    def parts(self) -> list[str]:
        """Read the ids of the runs that a merged one was merged from; none of any other."""
        return self._told(lambda result: [str(part["run"]) for part in result["parts"]], [])

    def key_of(self, run: str) -> bytes:
        """Give the key of one of the runs that this one was merged from, or else its own. See `key`."""
        return read_key(self.path / _KEYS / run) if run in self.parts() and run == Path(run).name else self.key

    def keep_key_of(self, run: str, key: bytes) -> None:
        """Write down the key of a run that this one is merged from, for its owner alone."""
        (self.path / _KEYS).mkdir(mode=0o700, exist_ok=True)
        _write_key(self.path / _KEYS / run, key)

    def secret(self, sweep: Sweep) -> bytes:
        """Give what every deal, seed and draw is derived from: the run's key, or what all runs share."""
        if sweep.scenario.scenario.secret != "random":  # noqa: S105
            return WRITTEN_DOWN
        key = self.key
        if not key:
            raise ResumeError(f"{self.path / _SECRET}: is missing, and every draw of the run was derived from it")
        return key

    @property
    def logs(self) -> Path:
        """Where the parties' logs go."""
        return self.path / "logs"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from playing in the folder while the context lasts.

        The system lets go of it with the process, however that ends.
        """
        # A file of its own, since those that are replaced would take a lock on them along.
        with (self.path / "lock").open("a") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ResumeError(
                    f"{self.path}: another process is playing in it: wait for its end, or end it"
                ) from None
            yield

    @property
    def begun(self) -> bool:
        """Whether it is more than an empty folder: something was played in it, or was about to be."""
        return (self.path / "result.json").exists()

    def discard(self) -> None:
        """Remove the folder of a run in which nothing was played, with all that is in it and was made for it."""
        shutil.rmtree(self.path)
        with contextlib.suppress(OSError):  # somebody else's is in it by now
            for above in self.made:
                above.rmdir()

    def confinement(self) -> list[dict[str, Any]]:
        """Read what confined each party, for each time that parties were started in the folder."""
        try:
            written = list(json.loads((self.path / "result.json").read_bytes()).get("confinement", []))
        except FileNotFoundError:
            written = []
        return written + [layers for tray in Tray.left_in(self.path) for layers in tray.starts()]

    def programs(self) -> dict[str, str]:
        """Read which programs played in our parties' place: their commands, by party."""
        return self._told(lambda result: dict(result["programs"]), {})

    def shard(self) -> Shard:
        """Read which part of a run is played in the folder."""
        return self._told(lambda result: Shard.parse(result["shard"]), WHOLE)

    def _told(self, of: Callable[[Any], T], otherwise: T) -> T:
        """Read something of ``result.json``, where that tells it."""
        try:
            return of(json.loads((self.path / "result.json").read_bytes()))
        except (FileNotFoundError, ValueError, LookupError, TypeError, ShardError):
            return otherwise

    def write_scenario(self, sweep: Sweep) -> None:
        """Keep the scenario as it is played."""
        _replace(self.path / "scenario.toml", tomli_w.dumps(as_values(sweep.scenario)))

    def add_trial(self, *lines: Mapping[str, Any]) -> None:
        """Append one trial to ``trials.jsonl``: it is kept whatever becomes of the run."""
        text = as_text(lines)
        with (self.path / "trials.jsonl").open("a", encoding="utf-8") as file:
            file.write(text)

    def add_fault(self, fault: Mapping[str, Any]) -> None:
        """Append a fault to ``faults.jsonl``, before it happens: a resumed run does not repeat it."""
        with (self.path / "faults.jsonl").open("a", encoding="utf-8") as file:
            file.write(as_text([fault]))

    def faults(self) -> list[dict[str, Any]]:
        """Read which faults have happened on purpose."""
        path = self.path / "faults.jsonl"
        return whole_lines(path.read_bytes()) if path.exists() else []

    def add_failure(self, failure: Mapping[str, Any]) -> None:
        """Append what a plug-in did in a trial that was not finished for it."""
        with (self.path / _FAILURES).open("a", encoding="utf-8") as file:
            file.write(as_text([failure]))

    def failures(self) -> list[dict[str, Any]]:
        """Read which trials plug-ins failed in: the swept values, the trial's number in its cell, and why."""
        path = self.path / _FAILURES
        return whole_lines(path.read_bytes()) if path.exists() else []

    def forget_failures(self) -> None:
        """Let what failed before be tried again."""
        (self.path / _FAILURES).unlink(missing_ok=True)

    def plugins(self) -> list[dict[str, str]]:
        """Read which plug-ins played."""
        path = self.path / "result.json"
        return named_in(path.read_bytes()) if path.exists() else []

    def settle(self, sweep: Sweep) -> dict[int, Lines]:
        """Make ``trials.jsonl`` hold the sweep's finished trials alone, in the order in which they are scheduled.

        What sessions at once have laid down is among them, and their trays are gone afterwards. A trial whose lines are
        not all there, or cut off, counts as not played. Gives the lines of each other one, by its number in the run.
        """
        path = self.path / "trials.jsonl"
        before = path.read_bytes() if path.exists() else b""
        trays = Tray.left_in(self.path)
        settled = finished(sweep, whole_lines(before))
        for number, lines in ((number, tray.lines(number)) for tray in trays for number in tray.finished()):
            if number not in settled:
                settled |= finished(sweep, lines)
        settled = dict(sorted(settled.items()))
        after = "".join(map(as_text, settled.values()))
        if after.encode() != before:
            _replace(path, after)
        for tray in trays:
            tray.clear()
        return settled

    def write_result(
        self,
        sweep: Sweep,
        trials: Sequence[Mapping[str, Any]],
        *,
        complete: bool,
        anchored: bool = True,
        confinement: Sequence[Mapping[str, Any]] = (),
        left_out: Sequence[LeftOut] = (),
        programs: Mapping[str, str] = NONE,
        shard: Shard = WHOLE,
        parts: Sequence[Mapping[str, str]] = (),
    ) -> dict[str, Any]:
        """Write ``result.json``: what was played, by which version, whether to its end, and the summary.

        And what confined each party, for each time that parties were started, whose programs played in our parties'
        place, which part of a run it is or which parts it was merged from, and which faults there were on purpose.
        Anchored, as when nobody plays any more, it also holds the end of each transcript and the digest of every file.
        """
        result = {
            "run": self.run,
            "scenario": sweep.scenario.scenario.name,
            **identity(sweep),
            "secret": sweep.scenario.scenario.secret,
            "version": fairwall.__version__,
            "complete": complete,
            "summary": summarise(sweep, trials),
            "left_out": [asdict(rows) for rows in left_out],
            "confinement": list(confinement),
            **({"programs": dict(programs)} if programs else {}),
            **({"plugins": [plugin.record for plugin in plugins]} if (plugins := plugins_of(sweep)) else {}),
            **({"failures": failures} if (failures := self.failures()) else {}),
            **({"shard": str(shard)} if shard != WHOLE else {}),
            **({"parts": [dict(part) for part in parts]} if parts else {}),
            **({"faults": self.faults()} if sweep.scenario.faults is not None else {}),
            "transcripts": files.anchors(self.path) if anchored else {},
            "files": digests(self.path) if anchored else {},
        }
        _replace(self.path / "result.json", json.dumps(result, indent=2, allow_nan=False) + "\n")
        return result


def played(path: Path, refused: type[UserError]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Read the ``result.json`` of a run that this version of fairwall has played, and its ``scenario.toml``."""
    try:
        result, scenario = json.loads((path / "result.json").read_bytes()), toml.read(path / "scenario.toml")
    except OSError as error:
        raise refused(f"{path}: not a run's folder: {Path(str(error.filename)).name}: {error.strerror}") from None
    except ValueError as error:
        raise refused(f"{path}: its scenario.toml or result.json cannot be read: {error}") from None
    if not isinstance(result, dict) or not isinstance(result.get("run"), str):
        raise refused(
            f"{path}: its result.json does not say which run it is of: it was changed; bring the old one back"
        )
    if result.get("version") != fairwall.__version__:
        raise refused(f"{path}: was played by fairwall {result.get('version')}, this is {fairwall.__version__}")
    return result, scenario


def digests(folder: Path) -> dict[str, str]:
    """Give the digest of each of a run's files as it is stored: BLAKE3, in hexadecimal.

    Left out are what may be written again afterwards, the result itself and the report, and the lock.
    """
    names = ("scenario.toml", "trials.jsonl", "faults.jsonl", _FAILURES, _SECRET)
    globs = ("logs/**/*", "transcript/*/*", f"{_KEYS}/*")
    kept = (*(folder / name for name in names), *(path for glob in globs for path in folder.glob(glob)))
    return {
        path.relative_to(folder).as_posix(): blake3(max_threads=1).update_mmap(path).hexdigest()
        for path in sorted(kept)
        if path.is_file()
    }


def read_key(path: Path) -> bytes:
    """Read a run's key; no bytes where there is no file."""
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise ResumeError(f"{path}: cannot be read: {error.strerror}") from None
    if len(key) != _KEY_BYTES:
        raise ResumeError(f"{path}: holds {len(key)} bytes, and a run's key has {_KEY_BYTES}")
    return key


def given_key(path: Path) -> bytes:
    """Read a key that a user made for a run."""
    try:
        mode = path.stat().st_mode
        key = path.read_bytes() if stat.S_ISREG(mode) else b""
    except OSError as error:
        raise KeyRefused(f"--secret: {path}: cannot be read: {error.strerror}") from None
    if mode & 0o077:
        raise KeyRefused(f"--secret: {path}: others than its owner can read it; chmod 600 it")
    if len(key) != _KEY_BYTES:
        raise KeyRefused(f"--secret: {path}: holds {len(key)} bytes, and a run's key has {_KEY_BYTES}")
    return key


def _write_key(path: Path, key: bytes) -> None:
    with open(path, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(key)


def _replace(path: Path, text: str) -> None:
    """Replace a file at once: a reader, or a crash, leaves the old text or the new one."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def identity(sweep: Sweep) -> dict[str, Any]:
    """Say what a sweep plays, by what two runs of the same sweep have in common; the digest leaves the seed out."""
    return {
        "scenario_digest": sweep.digest,
        "seed": sweep.scenario.scenario.seed,
        "cells": [dict(cell.swept) for cell in sweep.cells],
    }


def difference(kept: Mapping[str, Any], asked: Mapping[str, Any]) -> str:
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
