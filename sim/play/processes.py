"""Our parties' processes: each starts, imports what it needs before confinement, and waits for its configuration.

This module imports no library, so the processes can start before anything else: a run's imports take as long as its
parties', and both proceed at once.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO

NAMES = ("compliance", "developer", "adversary")


@dataclass(frozen=True)
class Waiting:
    """A process waiting for its configuration, and its stderr until a log is open."""

    process: subprocess.Popen[str]
    errors: IO[bytes]


@contextlib.contextmanager
def waiting(names: Sequence[str] = NAMES) -> Iterator[dict[str, Waiting]]:
    """Start parties' processes; those still in the dictionary at the context's end are killed."""
    started: dict[str, Waiting] = {}
    try:
        for name in names:
            started[name] = start(name)
        yield started
    finally:
        for one in started.values():
            one.process.kill()
            one.process.communicate()
            one.errors.close()


def start(name: str) -> Waiting:
    """Start one of our parties' processes."""
    # -I: neither the caller's environment nor its working directory decides which of our code runs.
    errors = tempfile.TemporaryFile()  # noqa: SIM115 - the process owns it until it ends
    return Waiting(begin([sys.executable, "-I", "-m", name, "--config", "-"], errors), errors)


def begin(command: Sequence[str], stderr: IO[bytes]) -> subprocess.Popen[str]:
    """Start a party's process, ours or an external program."""
    return subprocess.Popen(  # noqa: S603 - our own interpreter and packages, or what the user names
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env=_environment(),
        # The runner handles Ctrl-C: it ends the parties in order.
        start_new_session=True,
    )


def _environment() -> dict[str, str]:
    """Return a party's environment: what a Python process needs, and nothing else of the caller's."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "SYSTEMROOT") if name in os.environ}
    # One thread per process: the machine is shared by all parties, and a sum's last bits must not depend on its cores.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {"LANG": "C.UTF-8", **kept, **threads}
