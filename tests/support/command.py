"""The command ``fairwall``, run as a process of its own, and its parties.

They are forked, as `tests.support.forked_programs` says.

A test of the start itself, of an environment or of a signal starts the command with `subprocess`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from tests.support import forked_programs

SMALL = """
[scenario]
name = "small"
game = "reveal"
trials = 3
seed = 7
[data]
source = "synthetic"
n = 30
n0 = 12
scores = "uniform"
[compliance]
mechanism = "conceal"
epsilon = 10.0
[developer]
strategy = "sensing"
queries = 4
"""
"""A scenario of all three parties that takes a fraction of a second to play."""


def fairwall(
    *arguments: object,
    cwd: Path | None = None,
    seconds: float = 600,
    python: str = sys.executable,
    on_start: Callable[[int], object] = lambda _: None,
    forks: bool = True,
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end, and catch what it says.

    Parameters
    ----------
    *arguments
        The command's.
    cwd
        Its working folder, the test's own by default.
    seconds
        How long it may take.
    python
        The interpreter that it starts its parties with.
    on_start
        Told the process's number.
    forks
        Whether its parties are forked from it, so that they have loaded all that it has.

    Raises
    ------
    subprocess.TimeoutExpired
        If it takes longer; it is killed then.
    """
    words = [str(argument) for argument in arguments]
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        command = [sys.executable, "-m", "sim", *words]
        with forked_programs.Popen(
            command, python=python, forks=forks, cwd=cwd, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr
        ) as process:
            try:
                on_start(process.pid)
                process.wait(seconds)
            finally:
                process.kill()
        said = []
        for stream in (stdout, stderr):
            stream.seek(0)
            said.append(stream.read().decode())
    return subprocess.CompletedProcess(words, process.returncode, *said)


def played(cwd: Path, *arguments: object) -> Path:
    """Play a scenario; the run's folder."""
    finished = fairwall("run", *arguments, "--json", cwd=cwd)
    assert finished.returncode == 0, finished.stderr
    return Path(json.loads(finished.stdout)["run_dir"])
