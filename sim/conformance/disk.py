"""The kinds of steps that fill a server's disk, or change its ledger, as backups and accidents do.

A full disk is a limit on the size of the files that the server's processes may write (``RLIMIT_FSIZE``), which needs no
rights and can be lifted again. The server's output goes through pipes, which have no such limit.
"""

from __future__ import annotations

import contextlib
import itertools
import resource
import shutil
import sys
import time
from pathlib import Path
from typing import Literal

from pydantic import Field

from fairwall import toml
from sim.conformance import calls, clock
from sim.conformance.audits import AuditStep
from sim.conformance.calls import ProtocolViolation
from sim.conformance.command import Surroundings
from sim.conformance.errors import ConformanceError
from sim.conformance.purchases import PurchaseStep, again
from sim.conformance.services import on
from sim.conformance.vocabulary import Predictions, Words
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
