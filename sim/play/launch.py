"""Starts the parties' processes, watches them, and leaves none behind.

A child process gets its configuration, private key included, on stdin, and answers with its address on stdout:
readiness is a handshake, never a sleep. No secret is on a command line or in an environment. A child ends when its
stdin closes, so it ends with the runner however the runner ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

from fairwall import plugins
from fairwall.errors import RunFailed, UserError
from fairwall.plugins import SECONDS, Plugin
from fairwall.rpc.confine import LAYERS
from fairwall.rpc.identity import Credentials
from fairwall.rpc.recorder import Recording
from sim.games.table import PluginFailed, TrialFailed
from sim.play import processes
from sim.play.processes import Waiting
from sim.scenarios.sweep import Sweep, plugins_of

_ADDRESS = re.compile(r"127\.0\.0\.1:[0-9]{1,5}")


class ProgramRefused(UserError):
    """A program that may not play, or cannot be started. Its text is one line that names the option."""


def check(sweep: Sweep, programs: Mapping[str, str]) -> None:
    """Raise `ProgramRefused` for programs that could recompute every draw, cannot start, or must be confined."""
    scenario = sweep.scenario.scenario
    for party, command in programs.items():
        if scenario.secret != "random":  # noqa: S105 - the name of a mode
            raise ProgramRefused(
                f'--{party}: only with --set scenario.secret=random: with "{scenario.secret}" a program that tries all '
                "seeds finds every draw of the run"
            )
        if scenario.require:
            raise ProgramRefused(
                f"--{party}: scenario.require demands {', '.join(scenario.require)}, and what confines another program "
                "only itself can say"
            )
        try:
            words = shlex.split(command)
        except ValueError as error:
            raise ProgramRefused(f"--{party}: {command!r}: {error}") from None
        if not words or shutil.which(words[0]) is None:
            raise ProgramRefused(f"--{party}: no command {words[0] if words else command!r}")


def said(line: str) -> tuple[str, list[dict[str, Any]]]:
    """Parse the first line of a ready program: its address ("" if none) and its layers of confinement.

    A layer has, as our parties' have, name, active and why_not. Raises ValueError with the fault.
    """
    try:
        values = json.loads(line)
    except ValueError:
        raise ValueError("is no JSON object") from None
    if not isinstance(values, dict) or values.keys() - {"address", "layers"}:
        raise ValueError("is to be a JSON object of address and layers")
    address, layers = values.get("address"), values.get("layers", [])
    if not isinstance(address, str) or (address and not _ADDRESS.fullmatch(address)):
        raise ValueError("is to have an address, as 127.0.0.1:PORT, or empty")
    if not isinstance(layers, list):
        raise ValueError("is to have a list of layers")
    return address, [_layer(layer) for layer in layers]


def _layer(values: Any) -> dict[str, Any]:
    if not isinstance(values, dict) or values.get("name") not in LAYERS or not isinstance(values.get("active"), bool):
        raise ValueError(f"is to have layers, each with a name among {', '.join(LAYERS)} and whether it is active")
    return {"name": values["name"], "active": values["active"], "why_not": str(values.get("why_not", ""))}


CALLS = {"compliance": "developer", "developer": "compliance", "adversary": "developer"}
"""The party whose service each party calls, besides the referee's."""

_HOST = "127.0.0.1"
_LEAVE_SECONDS = 4.0
"""Seconds that the parties together have for leaving; then the remaining ones are killed."""

_LAST_WORDS_SECONDS = 0.3
"""Seconds by which a party that a plug-in ends may outlive a party that called it."""

_START_SECONDS = 120.0
"""Seconds that an external program may take until it announces its address."""

_LINE_MOST = 1 << 16
_LOG_LINES = 5


class PartyDied(RunFailed):
    """A party's process that ended before the run did."""


class ConfinementMissing(UserError):
    """A layer of confinement that a scenario demands and the system does not provide. Its text is one line."""


@dataclass(frozen=True)
class Party:
    """A running party.

    ``errors`` is the stderr of one of our parties until it opens its log; None for an external program, whose stderr
    goes to the log from the start.
    """

    name: str
    process: subprocess.Popen[str]
    log: Path
    errors: IO[bytes] | None

    def _said(self) -> bytes:
        logged = self.log.read_bytes() if self.log.exists() else b""
        if self.errors is None or logged:
            return logged
        self.errors.seek(0)
        return self.errors.read()

    @property
    def is_ours(self) -> bool:
        """Whether it runs our code."""
        return self.errors is not None

    def failure(self) -> TrialFailed:
        """Return the failure of an ended process: `PluginFailed` if a plug-in ended it."""
        lines = [line for line in self._said().decode(errors="replace").splitlines() if line.startswith("plug-in ")]
        if self.process.returncode == plugins.STATUS and lines:
            return PluginFailed(lines[-1])
        return TrialFailed(self.epitaph())

    def epitaph(self) -> str:
        """Return a description of how the process ended: the party's name, the exit status, and the last log lines."""
        status = self.process.returncode
        ended = f"was killed by {signal.Signals(-status).name}" if status < 0 else f"ended with exit status {status}"
        lines = self._said().decode(errors="replace").splitlines()[-_LOG_LINES:]
        return "\n".join(
            [f"{self.name} {ended} before the run was over", *(f"  {self.name}| {line}" for line in lines)]
        )


@dataclass(frozen=True)
class Announced:
    """A ready party: its address ("" if none), its layers of confinement, and its process."""

    address: str
    layers: list[dict[str, Any]]
    process: subprocess.Popen[str]


@dataclass(frozen=True)
class Start:
    """Options for starting the parties.

    Attributes
    ----------
    programs : commands of programs that replace our parties, by party. They are started with ``--config -`` added, get
        the same configuration on stdin, and answer the same way.
    waiting : processes of ours that were started before, by party; used ones are removed.
    meanwhile : called while the parties start. If it raises, nothing is played.
    detours : addresses to give a caller instead of the server's, by link: "<caller>-<server>".
    log_suffix : distinguishes these parties' logs from others in the same folder.
    """

    programs: Mapping[str, str] = field(default_factory=dict)
    waiting: MutableMapping[str, Waiting] = field(default_factory=dict)
    meanwhile: Callable[[], None] = lambda: None
    detours: Mapping[str, str] = field(default_factory=dict)
    log_suffix: str = ""


@dataclass(frozen=True)
class Plugged:
    """The plug-ins that our parties may run, and the most seconds that a call of one may take."""

    plugins: Sequence[Plugin] = ()
    seconds: float = SECONDS

    @classmethod
    def of(cls, sweep: Sweep, *others: str) -> Plugged:
        """Return the plug-ins that a scenario names, with ``others`` added by name."""
        return cls(plugins_of(sweep, *others), sweep.scenario.scenario.plugin_seconds or SECONDS)


UNPLUGGED = Plugged()


@contextlib.contextmanager
def launch(
    credentials: Mapping[str, Credentials],
    referee: str,
    logs: Path,
    on_death: Callable[[Party], None],
    recording: Recording | None = None,
    names: Sequence[str] = processes.NAMES,
    elsewhere: Mapping[str, str] = MappingProxyType({}),
    start: Start = Start(),
    plugged: Plugged = UNPLUGGED,
) -> Iterator[dict[str, Announced]]:
    """Run the named parties' processes while the context lasts; yield what each announced, by party.

    ``referee`` is the referee's address; ``elsewhere`` has the addresses of servers that are not started here. The
    folder ``logs`` gets one log per party. ``on_death`` gets, from another thread, a party that ends while the context
    lasts. Raises `PartyDied` if a party ends before it is ready.
    """
    leaving = threading.Event()
    parties: list[Party] = []
    kept = contextlib.ExitStack()
    try:
        places = {name: elsewhere.get(name) or _reserve(kept) for name in sorted(set(CALLS.values()))}
        for name in names:
            # Beside the logs: what a killed runner leaves behind stays with the run.
            scratch = kept.enter_context(tempfile.TemporaryDirectory(prefix=f"scratch-{name}-", dir=logs.parent))
            told = {server: start.detours.get(f"{name}-{server}", place) for server, place in places.items()}
            reached = start.detours.get(f"{name}-referee", referee)
            log = logs / f"{name}{start.log_suffix}.log"
            ready = start.waiting.pop(name, None)
            parties.append(
                _start(
                    credentials[name], reached, told, scratch, log, recording, start.programs.get(name), ready, plugged
                )
            )
        start.meanwhile()
        announced = {party.name: _announced(party) for party in parties}
        for party in parties:
            threading.Thread(target=_watch, args=(party, parties, leaving, on_death), daemon=True).start()
        yield announced
        # Played to the end: every party knows, and closes its transcript before it leaves.
        leaving.set()
        _wait(parties)
    finally:
        leaving.set()
        _end(parties)
        kept.close()


def _reserve(kept: contextlib.ExitStack) -> str:
    """Reserve a port by binding a socket that never listens, so that others can be confined to it; "" if impossible."""
    if sys.platform != "linux":  # elsewhere the party could not bind the reserved port either
        return ""
    place = kept.enter_context(socket.socket())
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind((_HOST, 0))
    return f"{_HOST}:{place.getsockname()[1]}"


def _start(
    credentials: Credentials,
    referee: str,
    places: Mapping[str, str],
    scratch: str,
    log: Path,
    recording: Recording | None,
    command: str | None,
    waiting: Waiting | None,
    plugged: Plugged,
) -> Party:
    if command is not None:
        with log.open("ab") as stderr:  # a resumed run keeps its earlier log
            process = processes.begin([*shlex.split(command), "--config", "-"], stderr)
        errors = None
    else:
        waiting = waiting or processes.start(credentials.party)
        process, errors = waiting.process, waiting.errors
    config = {
        "run": credentials.run,
        "party": credentials.party,
        "referee": referee,
        "listen": places.get(credentials.party) or f"{_HOST}:0",
        "counterpart": places[CALLS[credentials.party]],
        "scratch": scratch,
        "authority": credentials.authority,
        "certificate": credentials.certificate,
        "key": credentials.key,
    }
    if errors is not None:
        config["log"] = str(log)
        if plugged.plugins:
            config |= {"plugins": plugins.told(plugged.plugins), "plugin_seconds": str(plugged.seconds)}
    if recording is not None:
        path = recording.path(credentials.party)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        config |= {"transcript": str(path), "record": recording.mode, "scenario_digest": recording.scenario_digest}
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # the party died: its missing address shows that
        process.stdin.write(json.dumps(config) + "\n")
        process.stdin.flush()
    return Party(credentials.party, process, log, errors)


def _announced(party: Party) -> Announced:
    assert party.process.stdout is not None
    silent = threading.Timer(_START_SECONDS, party.process.kill)
    if not party.is_ours:
        silent.start()
    line = party.process.stdout.readline(_LINE_MOST)
    silent.cancel()
    if not line:
        party.process.wait()
        raise PartyDied(party.epitaph())
    if party.is_ours:
        return Announced(**json.loads(line), process=party.process)
    try:
        return Announced(*said(line), process=party.process)
    except ValueError as error:
        raise PartyDied(f"{party.name}: its first line {error}: {line[:80]!r}") from None


def _watch(party: Party, parties: Sequence[Party], leaving: threading.Event, on_death: Callable[[Party], None]) -> None:
    """Wait until a party ends, and report it, or another that a plug-in ended: this party may have called that one."""
    party.process.wait()
    if leaving.is_set():
        return
    if party.process.returncode not in (0, plugins.STATUS):
        for other in parties:
            with contextlib.suppress(subprocess.TimeoutExpired):
                other.process.wait(_LAST_WORDS_SECONDS)
    failed = [each for each in parties if each.process.poll() == plugins.STATUS]
    on_death(failed[0] if failed else party)


def _end(parties: list[Party]) -> None:
    """Close every stdin, wait for all parties together, and kill those that have not left."""
    try:
        for party in parties:
            assert party.process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                party.process.stdin.close()
        _wait(parties)
    finally:  # also if a second interrupt ends the wait
        for party in parties:
            party.process.kill()
            if not party.is_ours:
                # It leads its own process group: what it started ends with it.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(party.process.pid, signal.SIGKILL)
            party.process.wait()
            assert party.process.stdout is not None
            party.process.stdout.close()
            if party.errors is not None:
                party.errors.close()


def _wait(parties: list[Party]) -> None:
    deadline = time.monotonic() + _LEAVE_SECONDS
    for party in parties:
        with contextlib.suppress(subprocess.TimeoutExpired):
            party.process.wait(max(0.0, deadline - time.monotonic()))
