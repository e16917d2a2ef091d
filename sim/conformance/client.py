"""Test a developer's client: each case starts it against a `judge.Judge`, and checks what it sent."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import Literal, Self

from pydantic import Field

from sim.conformance import clock, command
from sim.conformance.calls import ProtocolViolation
from sim.conformance.command import Surroundings
from sim.conformance.judge import MACHINE, USER, Judge, OfferedTerms, require_nameless, require_unguessable
from sim.conformance.step_base import Words
from sim.conformance.world import CaseState, NotRun

_SECONDS = 120.0


class Client(Words):
    """A step that starts the client under test, against a server with the certificate `shows`, a folder of the kit.

    After the first audit, which is lost, the server has the certificate `then_shows`. It answers connections with what
    it `speaks`. `lose` audits are lost on the way back, and end with `fails`, see `Judge`; with `refuse` all are
    refused for this reason. `offer` has unusual terms.

    The client must end with status 0 if it was answered, else with another. `audits` is the least and the most audits
    that must arrive; if the client must be `silent`, no call at all.
    """

    do: Literal["client"]
    shows: str = "compliance"
    then_shows: str = ""
    speaks: Literal["TLS", "plain text", "nothing", "an alert"] = "TLS"
    lose: int = 0
    fails: str = "UNAVAILABLE"
    refuse: str = ""
    offer: OfferedTerms = OfferedTerms()
    ends: Literal["answered", "unanswered", "any"] = "answered"
    audits: tuple[int, int] = (1, 1)
    silent: bool = False

    def run(self, world: CaseState) -> None:
        """Start the client, wait for its end, and judge it."""
        if self.speaks == "TLS":
            judge, status = self._judged(world, Surroundings())
            self._check(judge, status)
            return
        with Deaf(self.speaks) as deaf:
            status = _status(world, deaf.address, Surroundings())
        if deaf.began and not all(first.startswith(_HANDSHAKE) for first in deaf.began):
            raise ProtocolViolation("it speaks plain text where TLS is refused")
        self._check_end(status)

    def _judged(self, world: CaseState, inside: Surroundings) -> tuple[Judge, int]:
        then = world.credentials(self.then_shows) if self.then_shows else None
        judge = Judge(
            world.subject.target.name,
            world.credentials(self.shows),
            self.lose,
            self.refuse,
            self.offer,
            self.fails,
            then,
        )
        with judge as address:
            return judge, _status(world, address, inside)

    def _check(self, judge: Judge, status: int) -> None:
        if judge.faults:
            raise ProtocolViolation(judge.faults[0])
        if self.silent and judge.calls:
            raise ProtocolViolation("it called a server that is not the one it means")
        least, most = self.audits
        if not self.silent and not least <= len(judge.heard) <= most:
            raise ProtocolViolation(f"it sent {len(judge.heard)} audits; {least} to {most} were due")
        ids, asked = {heard.request_id for heard in judge.heard}, {heard.asked for heard in judge.heard}
        if not len(ids) == len(asked) == len(set(judge.heard)):
            raise ProtocolViolation("it sent the same request under another id, or another request under the same")
        self._check_end(status)

    def _check_end(self, status: int) -> None:
        if self.ends != "any" and (status == 0) != (self.ends == "answered"):
            raise ProtocolViolation(f"it ended with status {status}, although it was {self.ends}")


class Clients(Words):
    """A step that starts the client several times, and tests all its request ids together.

    Half of the runs have the same frozen clock and process id: the ids must then differ by something random.
    """

    do: Literal["clients"]
    runs: int = Field(default=3, ge=2, le=5)

    def run(self, world: CaseState) -> None:
        """Start the client repeatedly, and test its ids."""
        found = [self._ids(world, Surroundings()) for _ in range(self.runs)]
        require_nameless(found, "a request id")
        require_unguessable([*found, *self._at_once(world)])

    def _at_once(self, world: CaseState) -> list[str]:
        with tempfile.TemporaryDirectory(prefix="fairwall-conformance-") as folder:
            try:
                inside = clock.surroundings(Path(folder), frozen=True, machine=MACHINE)
                found = [self._ids(world, inside) for _ in range(self.runs)]
                clock.require_asked(Path(folder))
            except NotRun:
                return []
        require_unguessable(found)
        if any(all(process in each for each in found) for process in clock.process_names()):
            raise ProtocolViolation("a request id tells the number of its process")
        require_nameless(found, "a request id")
        return found

    def _ids(self, world: CaseState, inside: Surroundings) -> str:
        step = Client(do="client")
        judge, status = step._judged(world, inside)
        step._check(judge, status)
        return judge.heard[0].request_id


_TOLD = {"USER": USER, "LOGNAME": USER, "HOSTNAME": MACHINE}

_HANDSHAKE = b"\x16\x03"
_ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
"""TLS alert for a failed handshake."""
_SETTINGS = b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"
"""First frame of an HTTP/2 server."""


class Deaf:
    """A server that records how each connection begins, and never shakes hands, for as long as the context lasts."""

    def __init__(self, speaks: str) -> None:
        self._says = {"plain text": _SETTINGS, "an alert": _ALERT, "nothing": b""}[speaks]
        self.began: list[bytes] = []

    def __enter__(self) -> Self:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._listen, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:  # closed
                return
            with connection, contextlib.suppress(OSError):
                connection.settimeout(1.0)
                self.began.append(connection.recv(1 << 16))
                connection.sendall(self._says)
                if self._says == _SETTINGS:
                    self.began[-1] += connection.recv(1 << 16)


def _status(world: CaseState, address: str, inside: Surroundings) -> int:
    own = world.subject.target.certificates / "developer-alice"
    places = {"{address}": address, "{credentials}": str(own)}
    told = Surroundings(variables={**_TOLD, **inside.variables})
    process = command.start(world.subject.command, places, stderr=subprocess.DEVNULL, inside=told)
    try:
        return process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        raise ProtocolViolation(f"it did not end within {_SECONDS:g} seconds") from None
    finally:
        command.end(process, signal.SIGKILL)
