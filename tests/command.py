"""The command ``fairwall``, run as a process of its own that is forked from one which has imported the program already.

Importing is more than half of what a small run costs, and the tests run the command some hundred times. All the rest is
as ever: arguments, working folder, streams and exit status are the command's own, and it starts its parties afresh. A
test of the start itself, of an environment or of a signal starts the command with `subprocess`.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    [
        # What the command imports, some of it only where it is needed.
        *("sim.cli.main", "sim.play.runner", "sim.replay.other_decoder", "sim.verify.check", "sim.runs.page"),
        "sim.games.reveal.report.words",
        *("pyarrow", "pandas", "scipy.special", "scipy.optimize"),
    ]
)


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

    Raises
    ------
    subprocess.TimeoutExpired
        If it takes longer; it is killed then.
    """
    words = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdout", "stderr")]
        # By its path: a package called tests may be installed, and hide this one from a new interpreter.
        given = {"arguments": (words, cwd or Path.cwd(), streams, python)}
        process = _CONTEXT.Process(target=runpy.run_path, args=(__file__, given, "__main__"))
        process.start()
        try:
            on_start(process.pid or 0)
            process.join(seconds)
        finally:
            process.kill()
        if process.exitcode is None:
            process.join()
            raise subprocess.TimeoutExpired(words, seconds)
        said = [stream.read_text() for stream in streams]
    return subprocess.CompletedProcess(words, process.exitcode, *said)


def played(cwd: Path, *arguments: object) -> Path:
    """Play a scenario; the run's folder."""
    finished = fairwall("run", *arguments, "--json", cwd=cwd)
    assert finished.returncode == 0, finished.stderr
    return Path(json.loads(finished.stdout)["run_dir"])


def _command(words: Sequence[str], cwd: Path, streams: Sequence[Path], python: str) -> None:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number, stream in enumerate(streams, start=1):
        os.dup2(os.open(stream, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), number)
    os.chdir(cwd)
    sys.argv = ["fairwall", *words]
    sys.executable = python
    from sim.cli.main import main

    main()


if __name__ == "__main__":
    _command(*arguments)  # type: ignore[name-defined]  # noqa: F821 - given above
