"""Start and end the tester's commands, with all processes that they start.

Each command leads its own process group, and the whole group is ended. A process that leaves the group, like a daemon,
is not.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from sim.conformance.inputs import ConformanceError

_SECONDS = 20.0
_PAUSE = 0.02


@dataclass(frozen=True)
class Surroundings:
    """The surroundings of a command: words before its own, and environment variables added to the tester's."""

    prefix: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


BARE = Surroundings()


def start(
    command: str,
    places: Mapping[str, str],
    *,
    stdout: int = subprocess.DEVNULL,
    stderr: int | IO[str],
    inside: Surroundings = BARE,
) -> subprocess.Popen[str]:
    """Start a command without a shell; `places` maps its placeholders, such as "{policy}", to their values."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise ConformanceError(f"--start: {command}: {error}") from None
    for name, value in places.items():
        words = [word.replace(name, value) for word in words]
    try:
        return subprocess.Popen(  # noqa: S603 - the tester's own command
            [*inside.prefix, *(words or [""])],
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            text=True,
            start_new_session=True,
            env={**os.environ, **inside.variables},
        )
    except OSError as error:
        raise ConformanceError(f"--start: {words[0] if words else command!r}: {error.strerror}") from None


def end(process: subprocess.Popen[str], signum: signal.Signals) -> None:
    """Send a signal to a command and its group, and kill what remains of them after a while."""
    _signal(process.pid, signum)
    give_up = time.monotonic() + _SECONDS
    while (process.poll() is None or any(processes(process.pid))) and time.monotonic() < give_up:
        time.sleep(_PAUSE)
    _signal(process.pid, signal.SIGKILL)
    process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _signal(group: int, signum: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signum)


def processes(group: int) -> Iterator[int]:
    """Yield the ids of a group's running processes, without those that ended and were not waited for."""
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it has ended since
            # After the name, which may contain anything: the state, the parent, the group.
            state, _, its_group, *_ = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            if int(its_group) == group and state not in "ZX":
                yield int(path.parent.name)
