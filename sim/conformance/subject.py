"""The server under test: where each of its deployments answers, and how it is started, killed and started again."""

from __future__ import annotations

import json
import selectors
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from sim.conformance import command
from sim.conformance.errors import ConformanceError
from sim.conformance.target import Target

_START_SECONDS = 60.0


class Subject:
    """A server under test, for as long as the context lasts.

    Parameters
    ----------
    target : Target
    start : str
        The command that starts a deployment: ``{policy}`` in it is the policy's path. It prints its address as a
        party's process does and serves until it is told to end. Empty: the target's addresses are served already.
    restart : str
        The command that kills a deployment that is served already and starts it again; it may print another address.
    """

    def __init__(self, target: Target, start: str = "", restart: str = "") -> None:
        self.target = target
        self.command = start
        self._restart = restart
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._addresses = {name: each.address for name, each in target.deployments.items() if each.address}
        self._folder = tempfile.TemporaryDirectory(prefix="fairwall-conformance-") if start else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for process in self._running.values():
            command.end(process, signal.SIGKILL)
        if self._folder is not None:
            self._folder.cleanup()

    @property
    def can_restart(self) -> bool:
        """Whether the tester may kill the server and start it again."""
        return bool(self.command or self._restart)

    @property
    def starts(self) -> bool:
        """Whether the tester starts the server itself."""
        return bool(self.command)

    def serves(self, deployment: str) -> bool:
        """Whether there is such a deployment to test."""
        return deployment in self.target.deployments and bool(self.command or deployment in self._addresses)

    def address(self, deployment: str) -> str:
        """Say where a deployment answers, and start it if it is not running yet.

        Raises
        ------
        ConformanceError
            If it does not start.
        """
        if self.command and deployment not in self._running:
            self._launch(deployment)
        return self._addresses[deployment]

    def restart(self, deployment: str, *, gently: bool) -> None:
        """End a deployment, by SIGTERM or without a warning, and start it again."""
        if self.command:
            if (process := self._running.pop(deployment, None)) is not None:
                command.end(process, signal.SIGTERM if gently else signal.SIGKILL)
            self._launch(deployment)
            return
        done = subprocess.run(  # noqa: S602 - the tester's own command
            self._restart.replace("{deployment}", deployment),
            shell=True,
            stdout=subprocess.PIPE,
            text=True,
            timeout=_START_SECONDS,
            check=False,
        )
        if done.returncode:
            raise ConformanceError(f"--restart: the command ended with exit status {done.returncode}")
        if done.stdout.strip().startswith("{"):
            self._addresses[deployment] = json.loads(done.stdout)["address"]

    def renew(self, deployment: str) -> None:
        """Start a deployment that has never answered anybody: the same policy and people, nothing else left."""
        if (process := self._running.pop(deployment, None)) is not None:
            command.end(process, signal.SIGKILL)
        for left in (self._place(deployment), self._shown(deployment)):
            shutil.rmtree(left, ignore_errors=True)
        self._launch(deployment)

    def log(self, deployment: str) -> str:
        """Return what a deployment that the tester started has written to stderr."""
        path = self._place(deployment) / "stderr"
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def _place(self, deployment: str) -> Path:
        """Return the folder that a deployment is served from: a copy, so that a kit is good for many tests."""
        assert self._folder is not None, "only what the tester starts has one"
        return Path(self._folder.name) / deployment

    def _shown(self, deployment: str) -> Path:
        """Return the folder of the credentials that a deployment shows: a copy too."""
        return self._place(deployment).parent / "certificates" / self.target.deployments[deployment].credentials

    def _launch(self, deployment: str) -> None:
        policy = self.target.deployments[deployment].policy
        if not policy:
            raise ConformanceError(f"deployments.{deployment}.policy: needed by --start: the policy to serve")
        place = self._place(deployment)
        if not place.exists():
            shutil.copytree((self.target.folder / policy).parent, place)
            # The policy names the credentials from its own folder.
            shown = self._shown(deployment)
            shutil.copytree(self.target.certificates / shown.name, shown, dirs_exist_ok=True)
        places = {"{policy}": str(place / Path(policy).name)}
        with (place / "stderr").open("a") as log:
            process = command.start(self.command, places, stdout=subprocess.PIPE, stderr=log)
        self._running[deployment] = process
        line = _first_line(process)
        try:
            self._addresses[deployment] = json.loads(line)["address"]
        except (ValueError, KeyError, TypeError):
            said = self.log(deployment).strip().splitlines()[-3:]
            raise ConformanceError(
                f"--start: the command did not print its address for {deployment}: {' / '.join(said) or line.strip()}"
            ) from None


def _first_line(process: subprocess.Popen[str]) -> str:
    """Wait for a line of stdout, but not for ever."""
    assert process.stdout is not None
    give_up = time.monotonic() + _START_SECONDS
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        if selector.select(max(0.0, give_up - time.monotonic())):
            return process.stdout.readline()
    return ""
