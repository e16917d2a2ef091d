"""Fault injection between the parties: proxies on their connections, and signals to their processes.

A proxy stands between a caller and a server and forwards bytes; the caller gets the proxy's address instead of the
server's. The connection is encrypted from end to end, so a proxy can delay, drop or corrupt bytes, but a corrupted
message is never accepted. A fault happens once in a run: a resumed run does not repeat it.
"""

from __future__ import annotations

import contextlib
import math
import random
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self, get_args

from sim.scenarios.scenario import OF_PARTIES, InjectedFault, LinkName, Scenario

if TYPE_CHECKING:
    from sim.play.launch import Announced
    from sim.runs.folder import RunFolder

_HOST = "127.0.0.1"
_READ_BYTES = 1 << 16
_PIECE_BYTES = 1 << 10
"""Bytes that a throttled link forwards at a time."""

_AFTER_BITS = 11
"""Log2 of the largest byte offset in a trial at which a drawn fault strikes. The offset is log-uniform."""

_FOR_GOOD = 0.1
"""Share of the drawn blackholes and pauses that never end by themselves."""


def planned(scenario: Scenario, number: int) -> tuple[InjectedFault, ...]:
    """Return the faults of a trial, by its number in the run: the scenario's named faults, then the drawn ones."""
    faults = scenario.faults
    if faults is None:
        return ()
    # Seeded by the trial's number: the faults of one trial do not depend on which other trials are played.
    chance = random.Random(f"{faults.seed} {number}")  # noqa: S311 - a game's dice
    steps = scenario.steps()
    named = [fault for fault in faults.at if fault.trial == number]
    drawn = []
    for _ in range(faults.per_trial):
        kind = chance.choice(faults.kinds)
        of_party = kind in OF_PARTIES
        fault: dict[str, Any] = {"trial": number, "kind": kind}
        if of_party:
            fault["party"] = chance.choice(faults.parties)
        if of_party and chance.random() < 0.5:
            fault["step"] = chance.choice(steps)
        else:
            fault["link"] = chance.choice(faults.links)
            fault["towards"] = chance.choice(("server", "client"))
            fault["after"] = int(2 ** chance.uniform(0, _AFTER_BITS)) - 1
        if kind in ("delay", "throttle"):
            fault["seconds"] = round(chance.uniform(0.01, 0.2), 3)
        elif kind in ("blackhole", "pause") and chance.random() >= _FOR_GOOD:
            fault["seconds"] = round(chance.uniform(0.1, 2.0), 3)
        drawn.append(InjectedFault(**fault))
    return (*named, *drawn)


class Proxy:
    """A proxy for one caller of one server, which forwards bytes except where a fault strikes.

    ``server``, "host:port", may be set later, but before the first call. ``on_fault`` runs just before, in another
    thread.
    """

    def __init__(self, server: str = "", on_fault: Callable[[InjectedFault], None] = lambda _: None) -> None:
        self.server = server
        self._on_fault = on_fault
        self._changed = threading.Condition()
        self._waiting: list[InjectedFault] = []
        self._passed = {"server": 0, "client": 0}
        self._slow: dict[str, InjectedFault] = {}
        self._silent_until = 0.0
        self._round = 0
        self._open: set[socket.socket] = set()
        self._door = socket.create_server((_HOST, 0))
        threading.Thread(target=self._welcome, daemon=True).start()

    @property
    def address(self) -> str:
        """The address to give the caller instead of the server's."""
        return f"{_HOST}:{self._door.getsockname()[1]}"

    def arm(self, faults: Sequence[InjectedFault]) -> None:
        """End the current faults, restart the byte counts, and wait for the moments of these faults."""
        with self._changed:
            self._waiting = sorted(faults, key=lambda fault: fault.after)
            self._passed = {"server": 0, "client": 0}
            self._slow.clear()
            self._silent_until = 0.0
            self._round += 1
            self._changed.notify_all()

    def befall(self, fault: InjectedFault) -> None:
        """Apply a fault to the next bytes in its direction."""
        with self._changed:
            due = fault.model_copy(update={"after": self._passed[fault.towards]})
            self._waiting = sorted([*self._waiting, due], key=lambda fault: fault.after)

    def close(self) -> None:
        """Break every connection, and accept no more."""
        self.arm(())
        with contextlib.suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits in accept
        self._door.close()
        with self._changed:
            for end in self._open:
                _break(end)

    def _welcome(self) -> None:
        while True:
            try:
                caller, _ = self._door.accept()
            except OSError:
                return
            threading.Thread(target=self._connect, args=(caller,), daemon=True).start()

    def _connect(self, caller: socket.socket) -> None:
        with caller, contextlib.suppress(OSError):
            host, _, port = self.server.rpartition(":")
            with socket.create_connection((host, int(port))) as server:
                ends = {caller, server}
                with self._changed:
                    self._open |= ends
                try:
                    for end in ends:
                        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    back = threading.Thread(target=self._carry, args=(server, caller, "client"), daemon=True)
                    back.start()
                    self._carry(caller, server, "server")
                    back.join()
                finally:
                    with self._changed:
                        self._open -= ends

    def _carry(self, source: socket.socket, sink: socket.socket, towards: str) -> None:
        """Forward one direction of a connection until it ends."""
        try:
            while data := source.recv(_READ_BYTES):
                for part, fault in self._parts(data, towards):
                    if fault is not None:
                        self._on_fault(fault)
                    if not self._pass_on(part, sink, towards, fault):
                        break
                else:
                    continue
                return
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            _break(source)
            _break(sink)

    def _parts(self, data: bytes, towards: str) -> list[tuple[bytes, InjectedFault | None]]:
        """Split received bytes where faults begin; return each part with its fault, None for the first part."""
        with self._changed:
            before = self._passed[towards]
            after = self._passed[towards] = before + len(data)
            due = [fault for fault in self._waiting if fault.towards == towards and fault.after < after]
            self._waiting = [fault for fault in self._waiting if fault not in due]
        cuts = [0, *(max(fault.after - before, 0) for fault in due), len(data)]
        return [(data[start:end], fault) for (start, end), fault in zip(pairwise(cuts), (None, *due), strict=True)]

    def _pass_on(self, data: bytes, sink: socket.socket, towards: str, fault: InjectedFault | None) -> bool:
        """Send the bytes that a fault leaves; return whether the direction stays open."""
        half = len(data) // 2
        match fault.kind if fault is not None else "":
            case "drop":
                raise ConnectionAbortedError
            case "half-close":
                sink.shutdown(socket.SHUT_WR)
                return False
            case "truncate":
                data = data[:half]
            case "duplicate":
                data = data + data
            case "reorder":
                data = data[half:] + data[:half]
            case "blackhole" if fault is not None:
                with self._changed:
                    self._silent_until = time.monotonic() + (math.inf if fault.seconds is None else fault.seconds)
            case "delay" | "throttle" if fault is not None:
                with self._changed:
                    self._slow[towards] = fault
        self._send(data, sink, towards)
        return True

    def _send(self, data: bytes, sink: socket.socket, towards: str) -> None:
        with self._changed:
            slow = self._slow.get(towards)
        if slow is not None and slow.kind == "delay":
            self._sleep(slow.seconds or 0.0)
        step = _PIECE_BYTES if slow is not None and slow.kind == "throttle" else max(len(data), 1)
        for start in range(0, len(data), step):
            piece = data[start : start + step]
            if slow is not None and slow.kind == "throttle":
                self._sleep((slow.seconds or 0.0) * len(piece) / _PIECE_BYTES)
            self._wait_for_sound()
            sink.sendall(piece)

    def _sleep(self, seconds: float) -> None:
        """Wait, but not beyond the trial's end."""
        with self._changed:
            began = self._round
            self._changed.wait_for(lambda: self._round != began, seconds)

    def _wait_for_sound(self) -> None:
        with self._changed:
            while (left := self._silent_until - time.monotonic()) > 0:
                self._changed.wait(None if math.isinf(left) else left)


class Injector:
    """Injects the faults of a run: a proxy on each link, and a wrapper around the referee's calls for faults at steps.

    The run's folder records which faults have happened.
    """

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._processes: dict[str, subprocess.Popen[str]] = {}
        self._paused: dict[str, threading.Timer | None] = {}
        self._at_steps: list[InjectedFault] = []
        self._numbers: dict[InjectedFault, int] = {}
        self._proxies = {link: Proxy(on_fault=self._happen) for link in get_args(LinkName)}

    @property
    def detours(self) -> dict[str, str]:
        """The proxy's address by link, which the link's caller gets instead of the server's."""
        return {link: proxy.address for link, proxy in self._proxies.items()}

    def lead_to(self, server: str, address: str) -> None:
        """Set a server's address, before the first call to it."""
        for link, proxy in self._proxies.items():
            if link.endswith(f"-{server}"):
                proxy.server = address

    def meet(self, announced: Mapping[str, Announced]) -> None:
        """Register the parties' processes and addresses, before the parties learn one another's addresses."""
        for name, party in announced.items():
            self._processes[name] = party.process
            self.lead_to(name, party.address)

    def watch(self, servicer: Any) -> Any:
        """Return a servicer that reports each call: the referee's calls are a trial's steps."""
        return _Watched(servicer, self._step)

    @contextlib.contextmanager
    def trial(self, scenario: Scenario, number: int) -> Iterator[None]:
        """Inject a trial's faults while the context lasts, except those that happened before; on exit, undo all."""
        happened = {(fault["trial"], fault["fault"]) for fault in self._folder.faults()}
        numbered = dict(enumerate(planned(scenario, number), start=1))
        due = [fault for k, fault in numbered.items() if (number, k) not in happened]
        with self._lock:
            self._numbers = {fault: k for k, fault in reversed(numbered.items())}
            self._at_steps = [fault for fault in due if fault.step is not None]
        for link, proxy in self._proxies.items():
            proxy.arm([fault for fault in due if fault.step is None and fault.link == link])
        try:
            yield
        finally:
            with self._lock:
                self._at_steps = []
            for proxy in self._proxies.values():
                proxy.arm(())
            for party in list(self._paused):
                self._wake(party)

    def close(self) -> None:
        """Close the proxies."""
        for proxy in self._proxies.values():
            proxy.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _step(self, name: str) -> None:
        with self._lock:
            due = [fault for fault in self._at_steps if fault.step == name]
            self._at_steps = [fault for fault in self._at_steps if fault.step != name]
        for fault in due:
            if fault.kind in OF_PARTIES:
                self._happen(fault)
            else:
                assert fault.link is not None, "checked when the scenario was read"
                self._proxies[fault.link].befall(fault)

    def _happen(self, fault: InjectedFault) -> None:
        """Record a fault, and signal its party's process if it has one: a proxy cannot do that."""
        original = fault.model_copy(update={"after": 0}) if fault.step is not None else fault
        with self._lock:
            self._folder.add_fault({"fault": self._numbers[original], **original.model_dump(exclude_none=True)})
        if fault.party is None:
            return
        process = self._processes[fault.party]
        if fault.kind == "kill":
            process.kill()
            return
        process.send_signal(signal.SIGSTOP)
        timer = threading.Timer(fault.seconds, self._wake, (fault.party,)) if fault.seconds is not None else None
        with self._lock:
            self._paused[fault.party] = timer
        if timer is not None:
            timer.daemon = True
            timer.start()

    def _wake(self, party: str) -> None:
        with self._lock:
            timer = self._paused.pop(party, None)
        if timer is not None:
            timer.cancel()
        self._processes[party].send_signal(signal.SIGCONT)


class _Watched:
    """A servicer that reports each call before answering."""

    def __init__(self, servicer: Any, saw: Callable[[str], None]) -> None:
        self._servicer = servicer
        self._saw = saw

    def __getattr__(self, method: str) -> Any:
        behaviour = getattr(self._servicer, method)

        def call(request: Any, context: Any) -> Any:
            self._saw(method)
            return behaviour(request, context)

        return call


def _break(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
