"""Judges a developer's client: each case starts it against a `judge.Judge`, and looks at what it sent."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from sim.conformance import command
from sim.conformance.calls import Violation
from sim.conformance.judge import Judge
from sim.conformance.world import NotRun, World

_SECONDS = 120.0


class Client(BaseModel):
    """Starts the client under test once.

    Parameters
    ----------
    shows : str
        Whose certificate the server has: a folder of the kit.
    lose : int
        How many audits are lost on the way back.
    refuse : str
        The reason for which all are refused.
    ends : "answered", "unanswered" or "any"
        With which status it must end: 0 if it was answered, else another.
    audits : (int, int)
        How many audits must have arrived, at least and at most.
    silent : bool
        Whether nothing at all may arrive.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    do: Literal["client"]
    shows: str = "compliance"
    lose: int = 0
    refuse: str = ""
    ends: Literal["answered", "unanswered", "any"] = "answered"
    audits: tuple[int, int] = (1, 1)
    silent: bool = False

    def run(self, world: World) -> None:
        """Start it, wait, and judge."""
        target = world.subject.target
        credentials = target.credentials(self.shows)
        if credentials is None:
            raise NotRun(f"needs credentials for {self.shows!r}")
        judge = Judge(target.name, credentials, self.lose, self.refuse)
        with judge as address:
            status = _status(world.subject.command, address, target.certificates / "developer-alice")
        self._check(judge, status)

    def _check(self, judge: Judge, status: int) -> None:
        if judge.faults:
            raise Violation(judge.faults[0])
        if self.silent and judge.calls:
            raise Violation("it called a server that is not the one it means")
        least, most = self.audits
        if not self.silent and not least <= len(judge.heard) <= most:
            raise Violation(f"it sent {len(judge.heard)} audits; {least} to {most} were due")
        ids, asked = {heard.request_id for heard in judge.heard}, {heard.asked for heard in judge.heard}
        if not len(ids) == len(asked) == len(set(judge.heard)):
            raise Violation("it sent the same request under another id, or another request under the same")
        if self.ends != "any" and (status == 0) != (self.ends == "answered"):
            raise Violation(f"it ended with status {status}, although it was {self.ends}")


def _status(start: str, address: str, credentials: Path) -> int:
    places = {"{address}": address, "{credentials}": str(credentials)}
    process = command.start(start, places, stderr=subprocess.DEVNULL)
    try:
        return process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        raise Violation(f"it did not end within {_SECONDS:g} seconds") from None
    finally:
        command.end(process, signal.SIGKILL)
