"""The server under test: where each of its deployments answers, and how it is started, killed and started again."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import tomli_w

from sim.conformance import command
from sim.conformance.command import BARE, Surroundings
from sim.conformance.errors import ConformanceError
from sim.conformance.target import Target

_START_SECONDS = 300.0
_WORD_SECONDS = 0.05
"""How long what is said takes to be written down."""
_LAST_WORDS_SECONDS = 2.0


class Subject:
    """A server under test, for as long as the context lasts.

    The command `start` starts a deployment: ``{policy}`` in it is the policy's path. It prints its address as a party's
    process does and serves until it is told to end. Where it is empty, the target's addresses are served already, and
    the command `restart` kills such a deployment and starts it again; it may print another address. What it `offers`
    besides audits is found out once.
    """

    def __init__(self, target: Target, start: str = "", restart: str = "") -> None:
        self.target = target
        self.command = start
        self._restart = restart
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._addresses = {name: each.address for name, each in target.deployments.items() if each.address}
        self._inside: dict[str, Surroundings] = {}
        self.offers: dict[str, bool] = {}
        self._listening: dict[str, list[threading.Thread]] = {}
        self._folder = tempfile.TemporaryDirectory(prefix="fairwall-conformance-") if start else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for deployment in list(self._running):
            self.end(deployment)
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
        if deployment not in self.target.deployments:
            return False
        return bool(self.command or (self.target.deployments[deployment].of or deployment) in self._addresses)

    def address(self, deployment: str) -> str:
        """Say where a deployment answers, and start it if it is not running yet."""
        deployment = self.target.deployments[deployment].of or deployment
        if self.command and deployment not in self._running:
            self._launch(deployment)
        return self._addresses[deployment]

    def restart(self, deployment: str, *, gently: bool) -> None:
        """End a deployment, by SIGTERM or without a warning, and start it again."""
        if self.command:
            self.end(deployment, gently=gently)
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

    def renew(self, deployment: str, inside: Surroundings = BARE) -> None:
        """Start a deployment that has never answered anybody: the same policy and people, nothing else left."""
        self.clear(deployment)
        self._inside[deployment] = inside
        self._launch(deployment)

    def clear(self, deployment: str) -> None:
        """End a deployment, and leave nothing of it: it starts by the target's policy, as if it had never run."""
        self.end(deployment)
        self._inside.pop(deployment, None)
        for left in (self.place(deployment), self.shown(deployment), self._said(deployment)):
            shutil.rmtree(left, ignore_errors=True)

    def change(self, deployment: str, policy: Mapping[str, Any]) -> None:
        """End a deployment and serve it by another policy from its next start on, until it is cleared."""
        self.end(deployment)
        self.policy(deployment).write_text(tomli_w.dumps(policy), encoding="utf-8")

    def end(self, deployment: str, *, gently: bool = False) -> None:
        """End a deployment that the tester started; it starts again when somebody asks for its address."""
        if (process := self._running.pop(deployment, None)) is not None:
            command.end(process, signal.SIGTERM if gently else signal.SIGKILL)
            for listening in self._listening.pop(deployment, ()):
                listening.join(_LAST_WORDS_SECONDS)

    def stop(self, deployment: str, *, gently: bool = False) -> None:
        """End a deployment, whoever started it; where somebody else did, it is back at once."""
        if self.command:
            self.end(deployment, gently=gently)
        else:
            self.restart(deployment, gently=gently)

    def surround(self, deployment: str, inside: Surroundings) -> None:
        """Say what a deployment is started in from now on."""
        self._inside[deployment] = inside

    def policy(self, deployment: str) -> Path:
        """Return the policy that a deployment is served by."""
        return self.place(deployment) / Path(self.target.deployments[deployment].policy).name

    def processes(self, deployment: str) -> list[int]:
        """Return the processes of a deployment that the tester started."""
        process = self._running.get(deployment)
        return [] if process is None else list(command.processes(process.pid))

    def log(self, deployment: str) -> str:
        """Return what a deployment that the tester started has written to stdout and stderr."""
        time.sleep(_WORD_SECONDS)
        paths = (self._said(deployment) / name for name in ("stdout", "stderr"))
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in paths if path.is_file())

    def place(self, deployment: str) -> Path:
        """Return the folder that a deployment is served from: a copy, so that a kit is good for many tests."""
        assert self._folder is not None, "only what the tester starts has one"
        return Path(self._folder.name) / (self.target.deployments[deployment].beside or deployment)

    def shown(self, deployment: str) -> Path:
        """Return the folder of the credentials that a deployment shows: a copy too."""
        return self.place(deployment).parent / "certificates" / self.target.deployments[deployment].credentials

    def _said(self, deployment: str) -> Path:
        """Return the folder of what a deployment says."""
        return self.place(deployment).parent / "said" / deployment

    def _launch(self, deployment: str) -> None:
        policy = self.target.deployments[deployment].policy
        if not policy:
            raise ConformanceError(f"deployments.{deployment}.policy: needed by --start: the policy to serve")
        place, said = self.place(deployment), self._said(deployment)
        if not place.exists():
            shutil.copytree((self.target.folder / policy).parent, place)
            # The policy names the credentials from its own folder.
            shown = self.shown(deployment)
            shutil.copytree(self.target.certificates / shown.name, shown, dirs_exist_ok=True)
        said.mkdir(parents=True, exist_ok=True)
        stdout, stderr = said / "stdout", said / "stderr"
        stdout.unlink(missing_ok=True)
        # Pipes, and no files of the server's own: those may be full.
        (told, to_told), (warned, to_warned) = os.pipe(), os.pipe()
        try:
            process = command.start(
                self.command,
                {"{policy}": str(self.policy(deployment))},
                stdout=to_told,
                stderr=to_warned,
                inside=self._inside.get(deployment, BARE),
            )
        finally:
            os.close(to_told)
            os.close(to_warned)
            self._listening[deployment] = [_listen(told, stdout), _listen(warned, stderr)]
        self._running[deployment] = process
        line = _first_line(process, stdout)
        try:
            self._addresses[deployment] = json.loads(line)["address"]
        except (ValueError, KeyError, TypeError):
            self.end(deployment)
            words = stderr.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-3:]
            raise ConformanceError(
                f"--start: the command did not print its address for {deployment}: {' / '.join(words) or line.strip()}"
            ) from None


def _listen(pipe: int, path: Path) -> threading.Thread:
    """Write down what comes out of a pipe, to its end."""

    def listen() -> None:
        with os.fdopen(pipe, "rb", buffering=0) as heard, path.open("ab", buffering=0) as file:
            while data := heard.read(1 << 16):
                file.write(data)

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    return listening


def _first_line(process: subprocess.Popen[str], path: Path) -> str:
    """Wait for a line of what a process says, but not for ever."""
    give_up = time.monotonic() + _START_SECONDS
    while time.monotonic() < give_up:
        if ended := process.poll() is not None:
            time.sleep(_WORD_SECONDS)
        said = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        if "\n" in said or ended:
            return said.partition("\n")[0]
        time.sleep(_WORD_SECONDS / 5)
    return ""
