"""The kinds of steps that fill a server's disk, change its ledger, as backups and accidents do, or watch it write."""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from fairwall import toml
from sim.conformance import calls, clock
from sim.conformance.audits import AuditStep
from sim.conformance.calls import ProtocolViolation
from sim.conformance.command import Surroundings
from sim.conformance.inputs import ConformanceError
from sim.conformance.purchases import PurchaseStep, again
from sim.conformance.services import on
from sim.conformance.step_base import Predictions, Words
from sim.conformance.world import SECONDS, CaseState, NotRun, Over

PATIENT = Surroundings(("sh", "-c", 'trap "" XFSZ; exec "$@"', "sh"))
"""Surroundings in which a write to a file that may not grow fails, without killing the writer."""

_FULL = Surroundings(("sh", "-c", 'trap "" XFSZ; ulimit -S -f 0; exec "$@"', "sh"))

_LEDGER = ("ledger", "seal")


class Anew(Words):
    """A step that starts a deployment as if it had never run, `on` a kind of disk and with a kind of `clock`."""

    do: Literal["anew"]
    deployment: str = ""
    on: Literal["any disk", "a disk that fills up"] = "any disk"
    clock: Literal["its own", "one that is set", "one that stands"] = "its own"

    def run(self, world: CaseState) -> None:
        """Start the deployment."""
        inside = PATIENT if self.on == "a disk that fills up" else Surroundings()
        if self.clock == "its own":
            start_anew(world, self.deployment, inside)
            return
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts")
        folder = world.subject.place(world.deployment).parent
        try:
            start_anew(world, self.deployment, clock.surroundings(folder, frozen=self.clock == "one that stands"))
        except ConformanceError:
            raise NotRun("needs a server that starts with a library loaded before its own") from None
        if self.clock == "one that stands":
            clock.require_asked(folder)


def start_anew(world: CaseState, deployment: str, inside: Surroundings) -> None:
    """Start a deployment as if it had never run."""
    name = deployment or world.deployment
    world.about(name)
    if not world.subject.starts:
        raise NotRun("needs a server that the tester starts")
    world.forget_connections()
    world.subject.renew(name, inside)
    world.forget_purchases(name)


class Disk(Words):
    """A step that fills the disk of a server, or makes room again.

    If it is `full` the ledger's largest file may grow by `room` bytes; with 0 nothing at all can be written.

    A full disk is a limit on the size of the files that the server's processes may write (``RLIMIT_FSIZE``), which
    needs no rights and can be lifted again. The server's output goes through pipes, which have no such limit.
    """

    do: Literal["disk"]
    full: bool
    room: int = Field(default=0, ge=0)

    def run(self, world: CaseState) -> None:
        """Set the limit, or lift it."""
        if not sys.platform.startswith("linux"):
            raise NotRun("needs Linux, to fill a server's disk")
        largest = max((path.stat().st_size for path in _files(_folders(world)["ledger"])), default=0)
        for process in world.subject.processes(world.deployment):
            with contextlib.suppress(ProcessLookupError):
                try:
                    _, most = resource.prlimit(process, resource.RLIMIT_FSIZE)
                    limit = (largest + self.room if self.room else 0) if self.full else most
                    resource.prlimit(process, resource.RLIMIT_FSIZE, (limit, most))
                except PermissionError:
                    raise NotRun("needs a server of the same user, to fill its disk") from None


class LedgerStep(Words):
    """A step that ends a server, and changes its ledger before it is started again.

    The ledger's files are copied ("keep"), replaced by the copy ("bring back"), or deleted, alone or with the sealed
    head ("lose", "lose all").
    """

    do: Literal["ledger"]
    act: Literal["keep", "bring back", "lose", "lose all"]
    ends: Literal["kill", "end"] = "kill"

    def run(self, world: CaseState) -> None:
        """End the server, and change its ledger."""
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts")
        world.subject.address(world.deployment)
        world.forget_connections()
        world.subject.end(world.deployment, gently=self.ends == "end")
        folders = _folders(world)
        ledger, copy = folders["ledger"], world.subject.place(world.deployment).parent / f"copy-of-{world.deployment}"
        if not _files(ledger):
            raise NotRun("needs a server whose ledger lies where the policy says")
        if self.act == "keep":
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(ledger, copy)
            return
        world.changed.add(world.deployment)  # it may not start again like this
        for name, folder in folders.items():
            if name == "ledger" or self.act == "lose all":
                shutil.rmtree(folder, ignore_errors=True)
        if self.act == "bring back":
            shutil.copytree(copy, ledger)


class Remembers(Words):
    """A step that demands that a server either does not start, which ends the case, or remembers its charges.

    With a `full` disk nothing can be written when it starts; if it does not start then, it must start once there is
    room.
    """

    do: Literal["remembers"]
    full: bool = False

    def run(self, world: CaseState) -> None:
        """Start the server, and check its callers' remaining budgets."""
        name = world.deployment
        if self.full:
            world.subject.surround(name, _FULL)
        try:
            world.subject.address(name)
        except ConformanceError:
            if not self.full:
                raise Over from None
            world.subject.surround(name, PATIENT)
            world.subject.address(name)
            return
        if self.full:
            return
        try:
            world.balance()
        except ProtocolViolation as violation:
            raise ProtocolViolation(f"it starts, and has forgotten what it charged: {violation}") from None


class KilledAmid(Words):
    """A step that ends the server after `answers` of `calls` simultaneous calls to its services, and repeats them."""

    do: Literal["killed_amid"]
    calls: int = Field(default=6, ge=1, le=8)
    answers: int = Field(default=1, ge=0)
    how: Literal["kill", "end"] = "kill"
    models: int = 64

    def run(self, world: CaseState) -> None:
        """Make the calls, end the server, and repeat the calls."""
        if not world.subject.can_restart:
            raise NotRun("needs a command that starts the server again")
        predictions = Predictions(models=self.models)
        ids = [world.request_id(f"amid-{world.step}-{number}") for number in range(self.calls)]
        steps: list[PurchaseStep] = [
            on(service, AuditStep(do="audit", request_id=each, predictions=predictions))
            for each, service in zip(ids, itertools.cycle(world.services), strict=False)
        ]
        for step in steps:
            world.open_account("developer", "", step.ACCOUNT)
        started = [step.start(world, step.asked(world)) for step in steps]
        give_up = time.monotonic() + SECONDS
        while sum(call.done() for call in started) < self.answers and time.monotonic() < give_up:
            time.sleep(0.0005)
        world.subject.stop(world.deployment, gently=self.how == "end")
        before = [calls.finish(step.METHOD, call) for step, call in zip(steps, started, strict=True)]
        world.forget_connections()
        for account in dict.fromkeys(step.ACCOUNT for step in steps):
            places = [place for place, step in enumerate(steps) if account == step.ACCOUNT]
            own, ends = [steps[place] for place in places], [before[place] for place in places]
            again(world, "developer", own, ends, "just before it ended")


def ledger_files(world: CaseState, deployment: str) -> list[Path]:
    """Return the possible files of a deployment's ledger and seal, and SQLite's files beside them."""
    named = _named(world, deployment).values()
    return [Path(f"{path}{end}") for path in named for end in ("", "-wal", "-shm", "-journal")]


def _folders(world: CaseState) -> dict[str, Path]:
    return {name: path.parent for name, path in _named(world, world.deployment).items()}


def _named(world: CaseState, deployment: str) -> dict[str, Path]:
    """Return the paths of a deployment's ledger and seal, from the policy that it was started with."""
    policy = world.subject.policy(deployment)
    place = toml.read(policy)["deployment"]
    return {name: policy.parent / place[name] for name in _LEDGER if name in place}


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


_WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2", "sendmsg", "sendto", "sendmmsg")
_SYNCS = ("fsync", "fdatasync", "msync", "sync_file_range", "syncfs")
_TRACED = ",".join((*_WRITES, *_SYNCS, "openat", "open"))

_ANSWER_BYTES = 8192
"""Fewest bytes of an answer to a large batch: earlier sends are smaller, the answer is several times larger."""
_MODELS = 1500

_CALL = re.compile(r"^(\d+)\s+(?:<\.\.\. )?(\w+)(?: resumed>)?(.*?)(?:\s+= (-?\d+|\?).*|<unfinished \.\.\.>)$")
_DIRECT = re.compile(r"O_D?SYNC")
_PLACE = re.compile(r"^\((\d+)<([^>]*)>")


@dataclass(frozen=True)
class _Did:
    """A finished system call of a server: its name, its file, its result and its text."""

    what: str
    path: str
    result: int
    text: str


class Synced(Words):
    """A step that requests large batches, and checks what the server writes, syncs and sends meanwhile.

    An answer may leave only after its charge is on the disk. ``strace`` reports the server's system calls. Where it is
    missing, or may not trace, the step is not run.
    """

    do: Literal["synced"]
    batches: int = Field(default=3, ge=1)

    def run(self, world: CaseState) -> None:
        """Request batches, and check the trace."""
        strace = shutil.which("strace")
        if strace is None:
            raise NotRun("needs strace, to see when a server writes")
        # With seccomp only traced calls stop the server; an older strace stops it at every call, too long for some.
        tracing = next((way for way in ((strace, "--seccomp-bpf", "-f"), (strace, "-f")) if _works(way)), None)
        if tracing is None:
            raise NotRun("needs strace to be allowed, to see when a server writes")
        if not world.subject.starts:
            raise NotRun("needs a server that the tester starts")
        trace = world.subject.place(world.deployment).parent / "trace"
        trace.unlink(missing_ok=True)
        prefix = (*tracing, "-y", "-qq", "-s", "0", "-e", "signal=none", "-e", f"trace={_TRACED}")
        try:
            start_anew(world, world.deployment, Surroundings((*prefix, "-o", str(trace))))
        except ConformanceError:
            raise NotRun("needs a server that starts under strace") from None
        ledger = [path.resolve() for path in ledger_files(world, world.deployment)]
        if not ledger[0].exists():
            raise NotRun("needs a server whose ledger lies where the policy says")
        for number in range(self.batches):
            before = trace.stat().st_size if trace.exists() else 0
            own = {"predictions": Predictions(models=_MODELS, random=number)}
            service = world.services[number % len(world.services)]
            on(service, AuditStep(do="audit", id=f"synced-{number}", **own)).run(world)
            time.sleep(0.3)
            opened = {each.path for each in _done(trace, 0) if each.what == "openat" and _DIRECT.search(each.text)}
            _check(_done(trace, before), ledger, opened)


def _works(way: tuple[str, ...]) -> bool:
    """Return whether such a command can trace a process."""
    return subprocess.run([*way, "-o", os.devnull, "true"], capture_output=True, check=False).returncode == 0  # noqa: S603 - ours


def _check(done: list[_Did], ledger: list[Path], direct: set[str]) -> None:
    """Demand that writes to the ledger's files were synced before the answer left."""
    own, sealed = str(ledger[0].parent), {str(path.parent) for path in ledger}
    written: set[str] = set()
    charged = answered = False
    for each in done:
        folder = str(Path(each.path).parent)
        if each.what in _WRITES and folder in sealed and not each.path.endswith("-shm") and each.result > 0:
            if answered and not charged:
                raise ProtocolViolation("an answer leaves before its charge is written to the ledger")
            charged |= folder == own and not answered
            if each.path not in direct:
                written.add(each.path)
        elif each.what in _SYNCS and each.result == 0:
            written = set() if each.what == "syncfs" else written - {each.path}
        elif each.what in _WRITES and "socket:" in each.path and each.result >= _ANSWER_BYTES and not answered:
            answered = True
            if written:
                names = ", ".join(sorted(Path(path).name for path in written))
                raise ProtocolViolation(
                    f"an answer leaves before its charge is on the disk: {names} was written, and not synced"
                )
    if not charged:
        raise NotRun("needs a server that writes its ledger where the policy says, as strace sees it")
    if not answered:
        raise NotRun("needs a server whose answers strace sees")


def _done(trace: Path, start: int) -> list[_Did]:
    """Return a trace's calls from an offset on, in the order in which they ended."""
    with trace.open("rb") as file:
        file.seek(start)
        lines = file.read().decode("utf-8", "replace").splitlines()
    begun: dict[tuple[str, str], str] = {}
    done: list[_Did] = []
    for line in lines:
        match = _CALL.match(line)
        if match is None:
            continue
        process, what, text, result = match.groups()
        if line.endswith("<unfinished ...>"):
            begun[process, what] = text
            continue
        if "resumed>" in line:
            text = begun.pop((process, what), "") + text
        place = _PLACE.match(text)
        path = place[2] if place else ""
        if what in ("openat", "open"):
            opened = re.search(r"= \d+<([^>]*)>", line)
            what, path = "openat", opened[1] if opened else ""
        done.append(_Did(what, path, int(result) if result and result != "?" else -1, text))
    return done
