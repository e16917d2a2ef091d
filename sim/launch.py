"""Starts the parties' processes, watches them, and leaves none behind.

A child gets its configuration, private key included, on stdin; it answers with its address on stdout: readiness is a
handshake, never a sleep. Nothing secret stands in a command line or an environment. A child ends when its stdin closes,
so it ends with the runner however the runner ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from fairwall.rpc.identity import Credentials

CHILDREN = ("compliance", "developer", "adversary")
_LEAVE_SECONDS = 5.0
_LOG_LINES = 5


class PartyDied(RuntimeError):
    """A party's process that ended before the run did."""


@dataclass(frozen=True)
class Party:
    """A running party."""

    name: str
    process: subprocess.Popen[str]
    log: Path

    def epitaph(self) -> str:
        """Tell how the process ended: its name, its exit status, its last log lines."""
        status = self.process.returncode
        ended = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-_LOG_LINES:]
        return "\n".join(
            [f"{self.name} {ended} before the run was over", *(f"  {self.name}| {line}" for line in lines)]
        )


@contextlib.contextmanager
def launch(
    credentials: Mapping[str, Credentials], referee: str, logs: Path, on_death: Callable[[Party], None]
) -> Iterator[dict[str, str]]:
    """Run the parties' processes for as long as the context lasts.

    Parameters
    ----------
    credentials : mapping of str to Credentials
        By party.
    referee : str
        The referee's address.
    logs : Path
        The folder that gets one log a party.
    on_death : callable
        Told, from another thread, of a party that ends while the context lasts.

    Yields
    ------
    dict of str to str
        The address of each party that serves, "" for one that does not.

    Raises
    ------
    PartyDied
        If a party ends before it says where it listens.
    """
    leaving = threading.Event()
    parties: list[Party] = []
    try:
        for name in CHILDREN:
            parties.append(_start(credentials[name], referee, logs / f"{name}.log"))
        addresses = {party.name: _address(party) for party in parties}
        for party in parties:
            threading.Thread(target=_watch, args=(party, leaving, on_death), daemon=True).start()
        yield addresses
    finally:
        leaving.set()
        _end(parties)


def _start(credentials: Credentials, referee: str, log: Path) -> Party:
    with log.open("w", encoding="utf-8") as stderr:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and packages
            # -I: neither the caller's environment nor its working directory decides which code runs.
            [sys.executable, "-I", "-m", credentials.party, "--config", "-"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=_environment(),
            # Ctrl-C is the runner's to handle: it ends the parties in order.
            start_new_session=True,
        )
    config = {
        "run": credentials.run,
        "party": credentials.party,
        "referee": referee,
        "listen": "127.0.0.1:0",
        "authority": credentials.authority,
        "certificate": credentials.certificate,
        "key": credentials.key,
    }
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # it died: its missing address tells
        process.stdin.write(json.dumps(config) + "\n")
        process.stdin.flush()
    return Party(credentials.party, process, log)


def _environment() -> dict[str, str]:
    """Give a party what a Python process needs, and nothing that the caller's environment holds besides."""
    kept = {name: os.environ[name] for name in ("PATH", "TMPDIR", "SYSTEMROOT") if name in os.environ}
    # One thread a process: the machine is shared by all parties, and a sum's last bits must not depend on its cores.
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {"LANG": "C.UTF-8", **kept, **threads}


def _address(party: Party) -> str:
    assert party.process.stdout is not None
    line = party.process.stdout.readline()
    if not line:
        party.process.wait()
        raise PartyDied(party.epitaph())
    return str(json.loads(line)["address"])


def _watch(party: Party, leaving: threading.Event, on_death: Callable[[Party], None]) -> None:
    party.process.wait()
    if not leaving.is_set():
        on_death(party)


def _end(parties: list[Party]) -> None:
    """Close every stdin, wait, and kill what has not left."""
    for party in parties:
        assert party.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            party.process.stdin.close()
    for party in parties:
        try:
            party.process.wait(_LEAVE_SECONDS)
        except subprocess.TimeoutExpired:
            party.process.kill()
            party.process.wait()
        assert party.process.stdout is not None
        party.process.stdout.close()
