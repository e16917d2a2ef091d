"""Tells a program under test another time than it is: a library that is loaded before its own, where it uses libc's.

A program that asks the kernel itself, or was linked without libc, is not told; the library counts how often it was
asked, so that such a program is known for one.
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
from sim.conformance.vocabulary import Words
from sim.conformance.world import NotRun, World

_LAYOUT = struct.Struct("=4q")
_SECOND = 1_000_000_000
_PROCESS = 4242
_COMPILERS = ("cc", "gcc", "clang")


def surroundings(folder: Path, *, frozen: bool = False, machine: str = "") -> Surroundings:
    """Make what a program is started in, so that a file of the folder tells it the time.

    Where the clock is `frozen` it stands still, at the same time for every program that is started with this folder,
    and its number as a process is always the same. `machine` is what its machine is called; by default what it is.
    """
    library, told = folder / "clock.so", folder / "clock"
    if not sys.platform.startswith("linux"):
        raise NotRun("needs Linux, to tell a program another time")
    if not library.exists():
        _compile(library)
        told.touch()
    stands_at = (int(library.stat().st_mtime) + 1) * _SECOND if frozen else 0
    with told.open("r+b") as file:  # in place: another program may look at it
        file.write(_LAYOUT.pack(0, stands_at, 0, _PROCESS if frozen else 0))
    variables = {"LD_PRELOAD": str(library), "FAIRWALL_CLOCK": str(told)}
    return Surroundings(variables={**variables, **({"FAIRWALL_MACHINE": machine} if machine else {})})


def process_names() -> tuple[str, str]:
    """Return how the number of a process may be written, where its clock stands."""
    return str(_PROCESS), f"{_PROCESS:x}"


def require_asked(folder: Path) -> None:
    """Demand that a program has asked what time it is."""
    if _LAYOUT.unpack((folder / "clock").read_bytes())[2] == 0:
        raise NotRun("needs a program that asks libc for the time")


class Clock(Words):
    """Sets the clock of a server that was started anew with one: so many seconds after the true time, or before it."""

    do: Literal["clock"]
    seconds: float

    def run(self, world: World) -> None:
        """Set it."""
        folder = world.subject.place(world.deployment).parent
        require_asked(folder)
        with (folder / "clock").open("r+b") as file, mmap.mmap(file.fileno(), _LAYOUT.size) as told:
            struct.pack_into("=q", told, 0, int(self.seconds * _SECOND))
        time.sleep(0.01)


class Balance(Words):
    """Demands that all who have called so far have left what they should."""

    do: Literal["balance"]

    def run(self, world: World) -> None:
        """Ask."""
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
