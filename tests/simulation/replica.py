"""The real ledger, run one step at a time: a replica is what it does next, given all that it has heard.

It keeps nothing but its books between two requests, so what it does is a function of what it heard. What was run once
need not be run again: `Replicas` remembers it, and runs the real code wherever a replica hears what it has not heard
at that point before.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import greenlet
import pytest

from compliance import ledger as code
from compliance.ledger import Ledger
from compliance.ledger.entries import LedgerEntry, LedgerError, Record, Reply, Request
from compliance.ledger.head import Head, derived
from compliance.ledger.store import LedgerUnavailable
from fairwall.rpc.errors import Refusal
from tests.simulation.model import State
from tests.simulation.world import Failure, Op, found

ATTEMPTS = 6
"""How often a client sends a request that is put off: more often than there are faults."""

_LIVE_MAX = 256
"""Replicas that are kept where they stand, for when they are asked to go on."""

_SQLITE_LINE = ""


class Killed(BaseException):
    """A process ends: nothing that it would do on the way out is done."""


Client = Callable[[Ledger, Request, Callable[[tuple[bytes, ...]], Reply], Callable[[bytes], None]], None]
"""Sends a request, given how an answer is drawn, and how it leaves."""


def ask(
    ledger: Ledger, request: Request, draw: Callable[[tuple[bytes, ...]], Reply], leave: Callable[[bytes], None]
) -> None:
    leave(ledger.settle(request, draw).reply.answer)


@dataclass(frozen=True)
class Point:
    """Where a replica stands.

    Parameters
    ----------
    op : Op
        What it does next; "done" if nothing.
    index : int
        How many of its requests are over.
    drawn : int
        How many answers it has drawn.
    before : int or None
        The point before, None where a process starts; what it heard there is `heard`.
    """

    who: int
    op: Op
    index: int
    drawn: int
    before: int | None
    heard: Any


class Process:
    """A process that runs a ledger: it stops at every step, and goes on with what it hears.

    Parameters
    ----------
    work : callable
        What it does.
    """

    def __init__(self, ledger: type[Ledger], work: Callable[[Process], None], one_line: bool, drawn: int = 0) -> None:
        self.one_line, self.drawn, self.index = one_line, drawn, 0
        self.opened: Ledger | None = None
        self.attempt: int | None = None  # set where a request is sent: nothing but the books is known then
        self._is_dead = False
        self._ledger, self._work = ledger, work
        self._steps = greenlet.greenlet(self._run)
        self._scheduler = greenlet.getcurrent()

    def go_on(self, heard: Any = None) -> Op:
        """Run to the next step."""
        self._scheduler = greenlet.getcurrent()
        op: Op = self._steps.switch(heard)
        return op

    def open(self) -> Ledger:
        self.opened = self._ledger(Store(self), Seal(self))  # type: ignore[arg-type]
        return self.opened

    def kill(self) -> None:
        self._is_dead = True
        if self._steps:
            self._steps.throw(Killed)

    def do(self, kind: str, line: str | None = None, value: Any = None) -> Any:
        """Stop before a step, and return what comes of it."""
        if self._is_dead:
            raise Killed
        return self._scheduler.switch(Op(kind, line, value))

    def _run(self, _: Any) -> Op:
        with suppress(Killed):
            self._work(self)
        return Op("done")


class Store:
    """A store, as of `compliance.ledger.store.Store`, each of whose statements is a step."""

    name = "the simulated ledger"

    def __init__(self, process: Process) -> None:
        self._process = process

    def chain_of(self, dataset: str) -> str:
        return _SQLITE_LINE if self._process.one_line else dataset

    @contextmanager
    def session(self, chain: str | None) -> Iterator[Session]:
        session = Session(self._process)
        try:
            session.do("begin", chain)
            yield session
            session.do("commit")
            if session.has_written:
                session.do("confirmed")
        except Killed:
            raise
        except BaseException:
            if not session.is_gone:
                session.do("rollback")
            raise

    @contextmanager
    def glance(self, chain: str) -> Iterator[Session | Glance]:
        if self._process.one_line:
            with self.session(chain) as session:
                yield session
            return
        heard = self._process.do("glance", chain)
        if isinstance(heard, Failure):
            raise LedgerUnavailable(heard.why)
        yield Glance(heard)

    @contextmanager
    def turn(self, developer: str) -> Iterator[None]:
        if self._process.one_line:
            yield
            return
        self._process.do("turn", value=developer)
        try:
            yield
        finally:
            self._process.do("turn over", value=developer)

    def close(self) -> None:
        pass


class Session:
    """A transaction, as of `compliance.ledger.store.StoreTransaction`."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.is_gone = self.has_written = False

    def do(self, kind: str, line: str | None = None, value: Any = None) -> Any:
        heard = self._process.do(kind, line, value)
        if isinstance(heard, Failure):
            self.is_gone = True
            raise LedgerUnavailable(heard.why)
        return heard

    def chains(self) -> tuple[str, ...]:
        return self.do("chains")

    def genesis(self, chain: str) -> bytes | None:
        return self.do("genesis", chain)

    def begin(self, chain: str, genesis: bytes) -> None:
        # No two begin alike.
        self.has_written = True
        self.do("start", chain, hashlib.sha256(chain.encode()).digest())

    def head(self, chain: str) -> Head:
        return self.do("head", chain)

    def records(self, chain: str, after: int) -> Iterator[Record]:
        return iter(self.do("records", chain, after))

    def append(self, chain: str, record: Record) -> None:
        self.has_written = True
        self.do("append", chain, record)

    def find(self, developer: str, request_id: str) -> tuple[LedgerEntry, bytes] | None:
        return self.do("find", value=(developer, request_id))


@dataclass(frozen=True)
class Glance:
    """A transaction that reads the database as it was at one moment, which is one step."""

    state: State

    def head(self, chain: str) -> Head:
        line = self.state.line(chain)
        assert line is not None
        return line.head

    def records(self, chain: str, after: int) -> Iterator[Record]:
        line = self.state.line(chain)
        assert line is not None
        return iter(line.records[after:])

    def find(self, developer: str, request_id: str) -> tuple[LedgerEntry, bytes] | None:
        return found(self.state.lines, developer, request_id)


@dataclass(frozen=True)
class Seal:
    """Where heads are sealed, as of `compliance.ledger.head.AnySeal`, each reading and writing a step."""

    process: Process
    line: str = ""
    path = "the simulated seal"

    def derived(self, purpose: str) -> bytes:
        return derived(bytes(32), purpose)

    def of(self, chain: str) -> Seal:
        return Seal(self.process, chain)

    def is_inside(self, folder: Path) -> bool:
        return False

    def check_apart(self, ledger: object) -> None:
        pass

    def read(self) -> Head | None:
        return self._do("seal read")

    def write(self, head: Head) -> None:
        self._do("seal write", head)

    def _do(self, kind: str, head: Head | None = None) -> Any:
        heard = self.process.do(kind, self.line, head)
        if isinstance(heard, Failure):
            raise OSError(heard.why)
        return heard


@contextmanager
def simulated(patches: Mapping[str, object]) -> Iterator[None]:
    """Have ledgers take the store that they are given for an open one, and no time pass; patch their module besides."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code, "open_store", lambda store: store)
        patch.setattr(code, "time", SimpleNamespace(time=lambda: 0.0))
        patch.setattr(code, "secrets", SimpleNamespace(token_bytes=bytes))
        for name, value in patches.items():
            patch.setattr(code, name, value)
        yield


class Replicas:
    """What replicas do, as far as it was seen. Points are numbered.

    Parameters
    ----------
    requests : sequence of sequences of Request
        What each replica's client asks, in order.
    """

    def __init__(
        self, ledger: type[Ledger], client: Client, requests: Sequence[Sequence[Request]], one_line: bool
    ) -> None:
        self._ledger, self._client, self._requests, self._one_line = ledger, client, requests, one_line
        self.points: list[Point] = []
        self.runs = 0
        self._next: dict[tuple[int, Hashable], int] = {}
        self._known: dict[Hashable, int] = {}
        self._ready: set[int] = set()
        self._live: OrderedDict[int, Process] = OrderedDict()

    def started(self, who: int, index: int = 0, drawn: int = 0) -> int:
        """Return where a process stands that was just started, with some of its requests behind it."""
        key = "start", who, index, drawn
        if key not in self._known:
            process = self._process(who, index, drawn)
            self._known[key] = self._stands(who, process, process.go_on(), None, None)
        return self._known[key]

    def after(self, number: int, heard: Any) -> int:
        """Return where a replica stands that has heard something."""
        key = number, _key(heard)
        found = self._next.get(key)
        if found is None:
            process = self._live.pop(number, None) or self._rebuilt(number)
            found = self._stands(self.points[number].who, process, process.go_on(heard), number, heard)
            self._next[key] = found
        return found

    def is_ready(self, number: int) -> bool:
        """Return whether a replica is about to begin with a request."""
        return number in self._ready

    def close(self) -> None:
        while self._live:
            self._live.popitem()[1].kill()

    def _process(self, who: int, index: int, drawn: int) -> Process:
        """Begin a process whose client has so many of its requests behind it."""

        def work(process: Process) -> None:
            opened = self._opened(process, self._requests[who][index:])
            while opened is not None and process.index < len(self._requests[who]):
                self._ask(process, opened, self._requests[who][process.index], who)
                process.index += 1

        self.runs += 1
        process = Process(self._ledger, work, self._one_line, drawn)
        process.index = index
        return process

    def _opened(self, process: Process, requests: Sequence[Request]) -> Ledger | None:
        """Open the ledger, as often as it takes; a service that must not use it does not start."""
        for _ in range(ATTEMPTS):
            try:
                return process.open()
            except LedgerUnavailable:
                continue
            except LedgerError as error:
                for each in requests:
                    process.do("halted", value=(each, str(error)))
                return None
        return process.do("starved")

    def _ask(self, process: Process, opened: Ledger, asked: Request, who: int) -> None:
        """Send a request until it is answered or refused."""

        def draw(_: tuple[bytes, ...]) -> Reply:
            process.drawn += 1
            return Reply(b"%d:%d" % (who, process.drawn))

        for process.attempt in range(ATTEMPTS):
            try:
                self._client(opened, asked, draw, lambda answer: process.do("reply", value=(asked, answer)))
            except LedgerUnavailable:
                continue
            except Refusal as refused:
                process.do("refused", value=(asked, refused.reason))
            except LedgerError as error:
                process.do("halted", value=(asked, str(error)))
            return
        process.do("starved")

    def _stands(self, who: int, process: Process, op: Op, before: int | None, heard: Any) -> int:
        """Number the point at which a process stands; it is known where nothing but its books is remembered."""
        known: Hashable = None
        if op.kind == "done":
            known = "done", who
        elif process.attempt is not None:
            assert process.opened is not None
            books = tuple(sorted((name, chain.books.head.chain) for name, chain in process.opened._chains.items()))
            known = who, process.index, process.drawn, process.attempt, books
            process.attempt = None
        number = self._known.get(known) if known is not None else None
        if number is None:
            number = len(self.points)
            self.points.append(Point(who, op, process.index, process.drawn, before, heard))
            if known is not None:
                self._known[known] = number
                self._ready.add(number)
        self._keep(number, process)
        return number

    def _keep(self, number: int, process: Process) -> None:
        if number in self._live:
            process.kill()
            return
        self._live[number] = process
        if len(self._live) > _LIVE_MAX:
            self._live.popitem(last=False)[1].kill()

    def _rebuilt(self, number: int) -> Process:
        """Run a process anew up to a point."""
        heard, point = [], self.points[number]
        while point.before is not None:
            heard.append(point.heard)
            point = self.points[point.before]
        process = self._process(point.who, point.index, point.drawn)
        op = process.go_on()
        for each in reversed(heard):
            op = process.go_on(each)
        process.attempt = None
        assert op == self.points[number].op, "a replica does the same again when it hears the same"
        return process


def _key(heard: Any) -> Hashable:
    """What tells results apart: a record by its digest, which is of all of it and of those before it."""
    if isinstance(heard, State):
        return tuple((name, line.head) for name, line in heard.lines)
    if isinstance(heard, tuple) and heard and isinstance(heard[0], Record):
        return tuple(each.chain if isinstance(each, Record) else each for each in heard)
    return heard
