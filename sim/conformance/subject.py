"""The server under test: its deployments' addresses, and the commands that start, kill and restart it."""

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
from sim.conformance.inputs import ConformanceError
from sim.conformance.target import Target

_START_SECONDS = 300.0
_WORD_SECONDS = 0.05
"""Time for a process's output to reach its file."""
_LAST_WORDS_SECONDS = 2.0


class ServerUnderTest:
    """A server under test, for as long as the context lasts.

    The command `start` starts a deployment; ``{policy}`` in it is the policy's path. It prints its address as a party's
    process does, and serves until it is stopped. If it is empty, the target's addresses are served already, and the
    command `restart` kills and restarts a deployment, which may print another address. `offers` caches which services
    the server has besides audits.
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
        """Return whether a deployment exists and can be reached or started."""
        if deployment not in self.target.deployments:
            return False
        return bool(self.command or (self.target.deployments[deployment].of or deployment) in self._addresses)

    def address(self, deployment: str) -> str:
        """Return a deployment's address; start the deployment if it is not running yet."""
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
        """Start a deployment anew: with the same policy and people, and nothing else from before."""
        self.clear(deployment)
        self._inside[deployment] = inside
        self._launch(deployment)

    def clear(self, deployment: str) -> None:
        """End a deployment and delete its files: it starts by the target's policy, as if it had never run."""
        self.end(deployment)
        self._inside.pop(deployment, None)
        for left in (self.place(deployment), self.shown(deployment), self._said(deployment)):
            shutil.rmtree(left, ignore_errors=True)

    def change(self, deployment: str, policy: Mapping[str, Any]) -> None:
        """End a deployment, and serve it by another policy from its next start until it is cleared."""
        self.end(deployment)
        self.policy(deployment).write_text(tomli_w.dumps(policy), encoding="utf-8")

    def end(self, deployment: str, *, gently: bool = False) -> None:
        """End a deployment that the tester started; the next request for its address starts it again."""
        if (process := self._running.pop(deployment, None)) is not None:
            command.end(process, signal.SIGTERM if gently else signal.SIGKILL)
            for listening in self._listening.pop(deployment, ()):
                listening.join(_LAST_WORDS_SECONDS)

    def stop(self, deployment: str, *, gently: bool = False) -> None:
        """End a deployment; one that the tester did not start is restarted at once."""
        if self.command:
            self.end(deployment, gently=gently)
        else:
            self.restart(deployment, gently=gently)

    def surround(self, deployment: str, inside: Surroundings) -> None:
        """Set the surroundings of a deployment's next starts."""
        self._inside[deployment] = inside

    def policy(self, deployment: str) -> Path:
        """Return the path of the policy that a deployment is served by."""
        return self.place(deployment) / Path(self.target.deployments[deployment].policy).name

    def processes(self, deployment: str) -> list[int]:
        """Return the process ids of a deployment that the tester started."""
        process = self._running.get(deployment)
        return [] if process is None else list(command.processes(process.pid))

    def log(self, deployment: str) -> str:
        """Return the stdout and stderr of a deployment that the tester started."""
        time.sleep(_WORD_SECONDS)
        paths = (self._said(deployment) / name for name in ("stdout", "stderr"))
        return "".join(path.read_text(encoding="utf-8", errors="replace") for path in paths if path.is_file())

    def place(self, deployment: str) -> Path:
        """Return the folder that a deployment is served from: a copy, so that a kit can be used for many tests."""
        assert self._folder is not None, "only what the tester starts has one"
        return Path(self._folder.name) / (self.target.deployments[deployment].beside or deployment)

    def shown(self, deployment: str) -> Path:
        """Return the folder with a copy of the credentials that a deployment shows."""
        return self.place(deployment).parent / "certificates" / self.target.deployments[deployment].credentials

    def _said(self, deployment: str) -> Path:
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
        # Pipes instead of files that the server writes: its disk may be full.
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
    """Copy a pipe to a file, in a thread, until the pipe ends."""

    def listen() -> None:
        with os.fdopen(pipe, "rb", buffering=0) as heard, path.open("ab", buffering=0) as file:
            while data := heard.read(1 << 16):
                file.write(data)

    listening = threading.Thread(target=listen, daemon=True)
    listening.start()
    return listening


def _first_line(process: subprocess.Popen[str], path: Path) -> str:
    """Return the first line that a process writes; "" after a timeout."""
    give_up = time.monotonic() + _START_SECONDS
    while time.monotonic() < give_up:
        if ended := process.poll() is not None:
            time.sleep(_WORD_SECONDS)
        said = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        if "\n" in said or ended:
            return said.partition("\n")[0]
        time.sleep(_WORD_SECONDS / 5)
    return ""
