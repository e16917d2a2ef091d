"""Set another time for a program under test, by a library that is loaded before its own and replaces libc's clock.

A program that asks the kernel itself, or is linked without libc, does not see it; the library counts how often it was
called, so that such a program is recognised.
"""

from __future__ import annotations

import mmap
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Literal

from sim.conformance.command import Surroundings
from sim.conformance.step_base import Words
from sim.conformance.world import CaseState, NotRun

_LAYOUT = struct.Struct("=4q")
_SECOND = 1_000_000_000
_PROCESS = 4242
_COMPILERS = ("cc", "gcc", "clang")


def surroundings(folder: Path, *, frozen: bool = False, machine: str = "") -> Surroundings:
    """Return surroundings in which a program reads its time from a file in the folder.

    A `frozen` clock stands still, at the same time for all programs with this folder, and the process id is fixed. A
    non-empty `machine` is the machine's name.
    """
    library, told = folder / "clock.so", folder / "clock"
    if not sys.platform.startswith("linux"):
        raise NotRun("needs Linux, to tell a program another time")
    if not library.exists():
        _compile(library)
        told.touch()
    stands_at = (int(library.stat().st_mtime) + 1) * _SECOND if frozen else 0
    with told.open("r+b") as file:  # in place: another program may have it mapped
        file.write(_LAYOUT.pack(0, stands_at, 0, _PROCESS if frozen else 0))
    variables = {"LD_PRELOAD": str(library), "FAIRWALL_CLOCK": str(told)}
    return Surroundings(variables={**variables, **({"FAIRWALL_MACHINE": machine} if machine else {})})


def process_names() -> tuple[str, str]:
    """Return the forms in which the process id of a program with a frozen clock may be written."""
    return str(_PROCESS), f"{_PROCESS:x}"


def require_asked(folder: Path) -> None:
    """Raise NotRun unless a program has read the clock."""
    if _LAYOUT.unpack((folder / "clock").read_bytes())[2] == 0:
        raise NotRun("needs a program that asks libc for the time")


class Clock(Words):
    """A step that sets the clock of a server started with one: `seconds` after the true time, or before it."""

    do: Literal["clock"]
    seconds: float

    def run(self, world: CaseState) -> None:
        """Write the offset for the server."""
        folder = world.subject.place(world.deployment).parent
        require_asked(folder)
        with (folder / "clock").open("r+b") as file, mmap.mmap(file.fileno(), _LAYOUT.size) as told:
            struct.pack_into("=q", told, 0, int(self.seconds * _SECOND))
        time.sleep(0.01)


class Balance(Words):
    """A step that demands the expected remaining budget of every caller so far."""

    do: Literal["balance"]

    def run(self, world: CaseState) -> None:
        """Check the remaining budgets."""
        world.balance()


def _compile(library: Path) -> None:
    source = Path(__file__).with_suffix(".c")
    for compiler in _COMPILERS:
        try:
            done = subprocess.run(  # noqa: S603 - the tester's own compiler
                [compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(source)],
                capture_output=True,
                timeout=60,
                check=False,
            )
        except OSError:
            continue
        if done.returncode == 0:
            return
    raise NotRun("needs a C compiler, to tell a program another time")
