"""The kind of step that watches a server write: an answer may leave only after its charge is on the disk.

``strace`` reports the server's system calls. Where it is missing, or may not trace, the step is not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import Field

from sim.conformance.audits import AuditStep
from sim.conformance.calls import ProtocolViolation
from sim.conformance.command import Surroundings
from sim.conformance.disk import ledger_files, start_anew
from sim.conformance.errors import ConformanceError
from sim.conformance.services import on
from sim.conformance.vocabulary import Predictions, Words
from sim.conformance.world import CaseState, NotRun

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
    """A step that requests large batches, and checks what the server writes, syncs and sends meanwhile."""

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
