"""Running the real command, and looking at its processes from outside."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from sim.play import processes
from tests.support import command, forked_programs
from tests.support.command import SMALL

PARTIES = ("compliance", "developer", "adversary")
_PATIENCE_SECONDS = 300.0


@dataclass(frozen=True)
class LiveRun:
    """A run that is being played: the command's process and, by name, its parties'."""

    command: subprocess.Popen[str]
    parties: dict[str, psutil.Process]
    folder: Path

    def is_over(self) -> bool:
        """Whether no party's process is left."""
        return not any(party.is_running() and party.status() != psutil.STATUS_ZOMBIE for party in self.parties.values())

    def wait_until_over(self, seconds: float) -> None:
        """Wait until no party's process is left."""
        _wait_until(self.is_over, seconds)

    def trials(self) -> int:
        """How many trials are finished."""
        return sum(len(path.read_text().splitlines()) for path in self.folder.glob("*/trials.jsonl"))


@pytest.fixture(scope="module", autouse=True)
def _forked_parties() -> Iterator[None]:
    """Have the parties of a game that a test plays in its own process forked, as those of the command are."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            processes, "subprocess", SimpleNamespace(**{**vars(subprocess), "Popen": forked_programs.Popen})
        )
        yield


@pytest.fixture
def fairwall(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run the command to its end; results go below the test's own folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return command.fairwall(*arguments, cwd=tmp_path, seconds=900)

    return run


@pytest.fixture
def play(fairwall: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., dict[str, Any]]:
    """Play a scenario and give the JSON object that it prints."""

    def play_scenario(*arguments: str) -> dict[str, Any]:
        finished = fairwall("run", *arguments, "--json")
        assert finished.returncode == 0, finished.stderr
        result: dict[str, Any] = json.loads(finished.stdout)
        return result

    return play_scenario


@pytest.fixture
def live_run(tmp_path: Path) -> Iterator[LiveRun]:
    """Start a run far too long to end by itself, and wait until it has finished a trial."""
    with _live(tmp_path) as run:
        yield run


@pytest.fixture(scope="module")
def seen_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveRun]:
    """Start such a run for all of a module's tests that only look at it."""
    with _live(tmp_path_factory.mktemp("seen")) as run:
        run.command.send_signal(signal.SIGSTOP)  # it would take a core for as long as the tests take
        yield run


@contextmanager
def _live(folder: Path) -> Iterator[LiveRun]:
    scenario = folder.with_suffix(".toml")  # beside the folder, in which there are runs alone
    scenario.write_text(SMALL)
    command = subprocess.Popen(
        [sys.executable, "-m", "sim", "run", str(scenario), "--trials", "100000", "--out", str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        _wait_until(lambda: any(folder.glob("*/trials.jsonl")))
        children = psutil.Process(command.pid).children()
        parties = {name: child for child in children for name in PARTIES if name in child.cmdline()}
        yield LiveRun(command, parties, folder)
    finally:
        command.kill()
        command.communicate()


def _wait_until(happened: Callable[[], bool], seconds: float = _PATIENCE_SECONDS) -> None:
    """Poll for something that happens in another process."""
    deadline = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)
