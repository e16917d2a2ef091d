"""A run's folder: the scenario as played, a line per trial, and the summary of the lines."""

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
from sim.runs.trial_queue import Tray
from sim.runs.trials import WHOLE, Lines, Shard, ShardError, as_text, finished, summarise, whole_lines
from sim.scenarios.scenario import as_values
from sim.scenarios.sweep import Sweep, plugins_of
from sim.transcripts import files

_SECRET = "secret"  # noqa: S105 - a file's name
"""File with the run's key. Only its owner may read it."""

_FAILURES = "failures.jsonl"

_KEYS = "keys"
"""Folder with the keys of the runs that a merged run was merged from, by run."""

_KEY_BYTES = 32

T = TypeVar("T")

NONE: Mapping[str, str] = MappingProxyType({})
"""No external programs."""


class ResumeError(UserError):
    """A run that cannot be resumed. Its text is one line with the reason."""


class KeyRefused(UserError):
    """A file that is no key for a run. Its text is one line with the reason."""


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run. ``run`` is the run's id: the folder's first name, which later renaming does not change.

    ``made`` are the parent folders that were created for it, the nearest first.
    """

    path: Path
    run: str
    made: tuple[Path, ...] = ()

    @classmethod
    def create(cls, parent: Path, name: str, key: bytes | None = None) -> RunFolder:
        """Create a folder named by time and scenario, for a run with a given or a random key."""
        now = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in name.lower()).strip("-") or "run"
        while (path := parent / f"{now}-{slug[:40]}-{secrets.token_hex(2)}").exists():
            pass  # two folders of one second may draw the same digits
        made = tuple(above for above in (parent, *parent.parents) if not above.exists())
        (path / "logs").mkdir(parents=True)
        folder = cls(path, path.name, made)
        folder.keep(key or secrets.token_bytes(_KEY_BYTES))
        return folder

    @classmethod
    def resume(cls, path: Path, sweep: Sweep, programs: Mapping[str, str] = NONE, shard: Shard = WHOLE) -> RunFolder:
        """Return the folder of an interrupted run, to resume it with the same sweep, programs and shard."""
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
        """Write the run's key to a file that only its owner may read."""
        _write_key(self.path / _SECRET, key)

    @property
    def key(self) -> bytes:
        """The run's own 32 random bytes, which no party ever receives. See `read_key`."""
        return read_key(self.path / _SECRET)

    def parts(self) -> list[str]:
        """Return the ids of the runs that a merged run was merged from; empty for any other run."""
        return self._told(lambda result: [str(part["run"]) for part in result["parts"]], [])

    def key_of(self, run: str) -> bytes:
        """Return the key of one of the runs that this run was merged from, or else its own. See `key`."""
        return read_key(self.path / _KEYS / run) if run in self.parts() and run == Path(run).name else self.key

    def keep_key_of(self, run: str, key: bytes) -> None:
        """Write the key of a run that this run is merged from to a file that only its owner may read."""
        (self.path / _KEYS).mkdir(mode=0o700, exist_ok=True)
        _write_key(self.path / _KEYS / run, key)

    def secret(self, sweep: Sweep) -> bytes:
        """Return the secret behind every draw: the run's key, or a constant if the scenario's secret is the seed."""
        if sweep.scenario.scenario.secret != "random":  # noqa: S105
            return WRITTEN_DOWN
        key = self.key
        if not key:
            raise ResumeError(f"{self.path / _SECRET}: is missing, and every draw of the run was derived from it")
        return key

    @property
    def logs(self) -> Path:
        """The folder of the parties' logs."""
        return self.path / "logs"

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep other processes from playing in the folder while the context lasts; the lock ends with the process."""
        # A separate file, since replacing a locked file would remove its lock.
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
        """Whether something was played in the folder, or was about to be."""
        return (self.path / "result.json").exists()

    def discard(self) -> None:
        """Remove the folder of a run in which nothing was played, with its content and the parents created for it."""
        shutil.rmtree(self.path)
        with contextlib.suppress(OSError):  # a parent holds someone else's files by now
            for above in self.made:
                above.rmdir()

    def confinement(self) -> list[dict[str, Any]]:
        """Return the layers that confined each party, for each start of parties in the folder."""
        try:
            written = list(json.loads((self.path / "result.json").read_bytes()).get("confinement", []))
        except FileNotFoundError:
            written = []
        return written + [layers for tray in Tray.left_in(self.path) for layers in tray.starts()]

    def programs(self) -> dict[str, str]:
        """Return the commands of the external programs that played, by party."""
        return self._told(lambda result: dict(result["programs"]), {})

    def shard(self) -> Shard:
        """Return the shard of the run that is played in the folder."""
        return self._told(lambda result: Shard.parse(result["shard"]), WHOLE)

    def _told(self, of: Callable[[Any], T], otherwise: T) -> T:
        """Read a value of ``result.json``, or return `otherwise`."""
        try:
            return of(json.loads((self.path / "result.json").read_bytes()))
        except (FileNotFoundError, ValueError, LookupError, TypeError, ShardError):
            return otherwise

    def write_scenario(self, sweep: Sweep) -> None:
        """Write the scenario as it is played."""
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
        """Return the injected faults that have happened."""
        path = self.path / "faults.jsonl"
        return whole_lines(path.read_bytes()) if path.exists() else []

    def add_failure(self, failure: Mapping[str, Any]) -> None:
        """Append a trial that a plug-in's failure ended."""
        with (self.path / _FAILURES).open("a", encoding="utf-8") as file:
            file.write(as_text([failure]))

    def failures(self) -> list[dict[str, Any]]:
        """Return the trials that plug-ins ended: the swept values, the trial's number in its cell, and the reason."""
        path = self.path / _FAILURES
        return whole_lines(path.read_bytes()) if path.exists() else []

    def forget_failures(self) -> None:
        """Clear the failures, so that their trials are tried again."""
        (self.path / _FAILURES).unlink(missing_ok=True)

    def plugins(self) -> list[dict[str, str]]:
        """Return the records of the plug-ins that played."""
        path = self.path / "result.json"
        return named_in(path.read_bytes()) if path.exists() else []

    def settle(self, sweep: Sweep) -> dict[int, Lines]:
        """Reduce ``trials.jsonl`` to the sweep's finished trials, in scheduled order; return them by number in the run.

        Trials that parallel sessions finished are added, and their trays are removed. A trial with missing or cut-off
        lines counts as not played.
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

        If ``anchored``, when nobody plays any more, it also holds the end of each transcript and the digest of every
        file.
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
    """Return ``result.json`` and ``scenario.toml`` of a run of this fairwall version, or raise a ``refused``."""
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
    """Return the BLAKE3 digests, in hexadecimal, of a run's stored files.

    Left out are the lock, and files that may be rewritten afterwards: the result itself and the report.
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
    """Return a run's key; empty if there is no file."""
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
    """Return a key that a user made for a run."""
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
    """Replace a file atomically: a reader, or a crash, leaves the old text or the new one."""
    new = path.with_name(f"{path.name}.new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def identity(sweep: Sweep) -> dict[str, Any]:
    """Return what two runs of the same sweep have in common; the scenario's digest leaves the seed out."""
    return {
        "scenario_digest": sweep.digest,
        "seed": sweep.scenario.scenario.seed,
        "cells": [dict(cell.swept) for cell in sweep.cells],
    }


def difference(kept: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    """Return the keys in which two scenarios differ, each with the old and the new value."""
    before, now = _flat(kept), _flat(wanted)
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
