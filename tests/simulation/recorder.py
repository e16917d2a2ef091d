"""What real ledgers do on a real store, written down event by event, for the model to judge; and faults on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from compliance.ledger.entries import Record
from compliance.ledger.head import AnySeal, Head
from compliance.ledger.place import Place, inspect
from compliance.ledger.store import Store, StoreTransaction
from tests.simulation.model import Begun, Broken, Committed, Event, Line, Sealed, State, after
from tests.simulation.replica import Killed


@dataclass
class Recorder:
    """The trace of all ledgers of one store.

    Parameters
    ----------
    often : float
        How probable it is that a step ends the service that takes it, and that a seal fails.
    """

    often: float = 0.0
    chance: Random = field(default_factory=lambda: Random(0))  # noqa: S311
    events: list[Event] = field(default_factory=list)
    confirmed: set[bytes] = field(default_factory=set)
    faults: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    """Held where what happens and what is written down have to be one."""

    def happened(self, event: Event) -> None:
        with self.lock:
            self.events.append(event)

    def step(self) -> None:
        if self.goes_wrong():
            raise Killed

    def goes_wrong(self) -> bool:
        with self.lock:
            wrong = self.chance.random() < self.often
            self.faults += wrong
        return wrong


class RecordedSession:
    """A transaction, whose statements may be the last."""

    def __init__(self, session: StoreTransaction, recorder: Recorder) -> None:
        self._session, self._recorder = session, recorder
        self.done: list[Begun | Committed] = []

    def __getattr__(self, name: str) -> Any:
        self._recorder.step()
        return getattr(self._session, name)

    def begin(self, chain: str, genesis: bytes) -> None:
        self._recorder.step()
        self._session.begin(chain, genesis)
        self.done.append(Begun(chain, genesis))

    def append(self, chain: str, record: Record) -> None:
        self._recorder.step()
        self._session.append(chain, record)
        self.done.append(Committed(chain, record))


class RecordedStore:
    """A store, as of `compliance.ledger.store.Store`, whose commits are written down."""

    def __init__(self, store: Store, recorder: Recorder) -> None:
        self._store, self._recorder = store, recorder
        self.name = store.name

    def chain_of(self, dataset: str) -> str:
        return self._store.chain_of(dataset)

    @contextmanager
    def session(self, chain: str | None) -> Iterator[RecordedSession]:
        self._recorder.step()
        with self._store.session(chain) as session:
            recorded = RecordedSession(session, self._recorder)
            yield recorded
            # While it is held, so that the order is right. Whether it comes to be is seen later.
            for event in recorded.done:
                self._recorder.happened(event)
        self._recorder.confirmed.update(each.record.chain for each in recorded.done if isinstance(each, Committed))
        self._recorder.step()

    @contextmanager
    def glance(self, chain: str) -> Iterator[RecordedSession]:
        self._recorder.step()
        with self._store.glance(chain) as session:
            yield RecordedSession(session, self._recorder)

    def turn(self, developer: str) -> AbstractContextManager[None]:
        return self._store.turn(developer)

    def close(self) -> None:
        self._store.close()


@dataclass(frozen=True)
class RecordedSeal:
    """A seal, as of `compliance.ledger.head.AnySeal`: whatever it is seen to hold is written down."""

    seal: AnySeal
    recorder: Recorder
    line: str = ""

    @property
    def path(self) -> Path | str:
        return self.seal.path

    def derived(self, purpose: str) -> bytes:
        return self.seal.derived(purpose)

    def of(self, chain: str) -> RecordedSeal:
        return RecordedSeal(self.seal.of(chain), self.recorder, chain)

    def is_inside(self, folder: Path) -> bool:
        return self.seal.is_inside(folder)

    def check_apart(self, ledger: str) -> None:
        pass

    def exists(self) -> bool:
        return self.seal.exists()

    def read(self) -> Head | None:
        self.recorder.step()
        with self.recorder.lock:
            return self._seen()

    def write(self, head: Head) -> None:
        if self.recorder.goes_wrong():
            raise OSError("it cannot be sealed")
        with self.recorder.lock:
            self.seal.write(head)
            self._seen()
        if self.recorder.goes_wrong():
            raise OSError("it was sealed, and nobody heard")

    def _seen(self) -> Head | None:
        head = self.seal.read()
        if head is not None:
            self.recorder.events.append(Sealed(self.line, head))
        return head


def state_of(place: Place, seal: AnySeal) -> State:
    """Return the state of a ledger that nobody uses."""
    lines = []
    for found in inspect(place, seal.derived("records")):
        assert found.fault == ""
        head = seal.of(found.chain).read()
        sealed = {found.genesis, *(each.chain for each in found.records)}
        lines.append((found.chain, Line(found.genesis, found.records, head, frozenset(sealed))))
    return State(tuple(lines))


def check(before: State, recorder: Recorder, then: State) -> State:
    """Judge a trace by the model: what it led from, and to.

    Raises
    ------
    Broken
        If it was not allowed, or leads elsewhere.
    """
    there = {record.chain for record in then.records()}
    lost = recorder.confirmed - there
    if lost:
        raise Broken(f"{len(lost)} records were committed, and are not there")
    state = before
    for event in recorder.events:
        if not isinstance(event, Committed) or event.record.chain in there:
            state = after(state, event)
    if [(name, line.head) for name, line in state.lines] != [(name, line.head) for name, line in then.lines]:
        raise Broken("there are records that nobody wrote")
    return state
