"""What replicas share, as values: a database as PostgreSQL keeps it, a standby that lags, and where heads are sealed.

Each statement, sync and seal is one step from a world to the next; so is each fault. Nothing here runs a ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from compliance.ledger.entries import LedgerEntry, Record
from compliance.ledger.head import Head
from tests.simulation.model import (
    Answered,
    Begun,
    Broken,
    Committed,
    Event,
    FailedOver,
    Halted,
    Line,
    Refused,
    Sealed,
    State,
    Strayed,
    after,
)


class Op(NamedTuple):
    """What a replica does next: a statement, the end of a transaction, a turn, a seal, or an answer that leaves."""

    kind: str
    line: str | None = None
    value: Any = None


class Failure(NamedTuple):
    """What a replica hears instead of a result."""

    why: str


GONE = Failure("the connection is gone")
TAKEN = Failure("another service wrote it at the same time")
UNSEALED = Failure("the seal cannot be written")

LATE = Failure("another service has sealed it meanwhile")

Places = tuple[Head, ...]
"""What a seal's place holds."""


def in_order(places: Places, head: Head) -> Places | None:
    """Seal a head, but none that comes too late, as all of a ledger's seals do."""
    return (head,) if places in ((), (head,)) or places[0].sequence < head.sequence else None


def sealed_in(places: Places) -> Head | None:
    return max(places, key=lambda head: head.sequence, default=None)


@dataclass(frozen=True)
class Rules:
    """How the store and the seal behave; anything but the defaults is a twin that is broken.

    Parameters
    ----------
    one_line : bool
        All data sets have one chain, and developers no turns among processes, as in a SQLite file.
    locks : bool
        Who holds a line is the only one.
    unique : bool
        One record of each number, and one for each request id of a developer.
    seal : callable
        How a head is sealed; None where it is refused.
    """

    one_line: bool = False
    locks: bool = True
    unique: bool = True
    seal: Callable[[Places, Head], Places | None] = in_order


@dataclass(frozen=True)
class Faults:
    """How many there may be yet.

    Parameters
    ----------
    crashes : int
        Of a process.
    cuts : int
        Of all connections of a process, by the server: it gives locks and turns back, and the process does not know.
    failovers : int
        To a standby that lacks up to `lag` transactions.
    splits : int
        Failovers after which the old database goes on, for those who have connections to it.
    unsealed : int
        Seals that fail, before or after they are durable.
    """

    crashes: int = 0
    cuts: int = 0
    failovers: int = 0
    splits: int = 0
    unsealed: int = 0
    lag: int = 2


@dataclass(frozen=True)
class Transaction:
    """Which line it holds, None for all of them, and what it wrote."""

    line: str | None
    begun: tuple[tuple[str, bytes], ...] = ()
    written: tuple[tuple[str, Record], ...] = ()

    def __hash__(self) -> int:
        return hash((self.line, self.begun, tuple(record.chain for _, record in self.written)))


@dataclass(frozen=True)
class World:
    """All that replicas share.

    Parameters
    ----------
    commits : tuple of str
        The line of each transaction that a standby may lack, in order. Each has one record.
    sessions : tuple of (Transaction or None)
        Of each replica.
    cut : tuple of bool
        Which replica hears next that its connection is gone.
    turns : tuple of (str, int)
        Which developer's turn is which replica's.
    old, strays : State or None, tuple of bool
        The database that another one took the place of, and which replica uses it yet.
    """

    state: State
    sessions: tuple[Transaction | None, ...]
    cut: tuple[bool, ...]
    faults: Faults
    strays: tuple[bool, ...]
    turns: tuple[tuple[str, int], ...] = ()
    old: State | None = None
    commits: tuple[str, ...] = ()
    places: tuple[tuple[str, Places], ...] = ()
    rules: Rules = field(default=Rules(), compare=False)


def step(world: World, who: int, op: Op) -> tuple[World, Any] | None:
    """Do what a replica does next, and return what it hears; None if it has to wait.

    Raises
    ------
    Broken
        If the protocol forbids what comes of it.
    """
    match op.kind:
        case "begin":
            return _begin(world, who, op.line)
        case "glance":
            return (_heard(world, who), GONE) if world.cut[who] else (world, _database(world, who))
        case "turn":
            if any(
                developer == op.value and world.strays[whose] == world.strays[who] for developer, whose in world.turns
            ):
                return None
            return replace(world, turns=tuple(sorted((*world.turns, (op.value, who))))), None
        case "turn over":
            return replace(world, turns=tuple(turn for turn in world.turns if turn != (op.value, who))), None
        case "confirmed":
            return (_heard(world, who), GONE) if world.cut[who] else (world, None)
        case "seal read":
            return world, sealed_in(_places(world, op.line))
        case "seal write":
            return sealed(world, op)
        case "reply":
            return _happened(world, Answered(*op.value)), None
        case "refused":
            return _happened(world, Refused(*op.value)), None
        case "halted":
            return _happened(world, Halted(*op.value)), None
        case "starved":
            raise Broken("a request was put off for ever")
    return _statement(world, who, op)


def sealed(world: World, op: Op) -> tuple[World, Any]:
    """Seal a head."""
    assert op.line is not None
    places = world.rules.seal(_places(world, op.line), op.value)
    if places is None:
        return world, LATE
    head = sealed_in(places)
    assert head is not None
    kept = tuple(each for each in world.places if each[0] != op.line)
    world = replace(world, places=tuple(sorted((*kept, (op.line, places)), key=lambda each: each[0])))
    return _happened(world, Sealed(op.line, head)), None


def crash(world: World, who: int) -> World:
    """End a process: what it had open is over."""
    faults = replace(world.faults, crashes=world.faults.crashes - 1)
    return _heard(_hung_up(replace(world, faults=faults), who, Op("")), who)


def cut(world: World, who: int, op: Op) -> World:
    """End a process's connections, which it hears when it uses them next."""
    return _hung_up(replace(world, faults=replace(world.faults, cuts=world.faults.cuts - 1)), who, op)


def fail_over(world: World, lag: int, ops: tuple[Op, ...], strays: tuple[bool, ...] | None = None) -> World:
    """Put the standby, which lacks so many transactions, in the place of the database: for all, or some go astray."""
    left, old = world.faults, world.state if strays else None
    left = replace(left, splits=left.splits - 1) if strays else replace(left, failovers=left.failovers - 1)
    lacking, kept = world.commits[len(world.commits) - lag :], world.commits[: len(world.commits) - lag]
    lines = tuple((name, len(line.records) - lacking.count(name)) for name, line in world.state.lines)
    world = _happened(world, FailedOver(lines, strays is not None))
    world = replace(world, commits=kept, faults=left, old=old)
    for who, op in enumerate(ops):
        if strays is None or not strays[who]:
            world = _hung_up(world, who, op)
    return replace(world, strays=strays or (False,) * len(ops))


def _happened(world: World, event: Event) -> World:
    return replace(world, state=after(world.state, event))


def _places(world: World, line: str | None) -> Places:
    return next((places for name, places in world.places if name == line), ())


def _put(world: World, who: int, session: Transaction | None) -> World:
    return replace(world, sessions=(*world.sessions[:who], session, *world.sessions[who + 1 :]))


def _heard(world: World, who: int) -> World:
    return replace(world, cut=(*world.cut[:who], False, *world.cut[who + 1 :]))


def _hung_up(world: World, who: int, op: Op) -> World:
    """Roll back what a replica has open, and give its turn to others. It hears of it if it waits for a reply."""
    waits = world.sessions[who] is not None or op.kind in ("begin", "glance", "confirmed") or world.cut[who]
    turns = tuple(turn for turn in world.turns if turn[1] != who)
    hears = (*world.cut[:who], waits, *world.cut[who + 1 :])
    strays = (*world.strays[:who], False, *world.strays[who + 1 :])  # it connects to the new one
    return replace(_put(world, who, None), turns=turns, cut=hears, strays=strays)


def _database(world: World, who: int) -> State:
    """Return what a replica is connected to."""
    if not world.strays[who]:
        return world.state
    assert world.old is not None
    return world.old


def _others(world: World, who: int) -> list[Transaction]:
    """List what other replicas have open in the same database."""
    return [
        each
        for number, each in enumerate(world.sessions)
        if number != who and each is not None and world.strays[number] == world.strays[who]
    ]


def _begin(world: World, who: int, line: str | None) -> tuple[World, Any] | None:
    if world.cut[who]:
        return _heard(world, who), GONE
    if world.rules.locks and any(None in (line, each.line) or each.line == line for each in _others(world, who)):
        return None
    return _put(world, who, Transaction(line)), None


def _statement(world: World, who: int, op: Op) -> tuple[World, Any] | None:
    """Run a statement: it sees what is committed by now, and what its own transaction wrote."""
    session = world.sessions[who]
    if session is None:
        return _heard(world, who), GONE
    database = _database(world, who)
    begun = dict(session.begun) | {name: line.genesis for name, line in database.lines}
    match op.kind:
        case "chains":
            return world, tuple(sorted(begun))
        case "genesis":
            return world, begun.get(op.line or "")
        case "start":
            return _put(world, who, replace(session, begun=(*session.begun, (op.line or "", op.value)))), None
        case "head":
            read = _read(database, session, op.line)
            return world, Head(read[-1].sequence, read[-1].chain) if read else Head(0, begun[op.line or ""])
        case "records":
            return world, tuple(record for record in _read(database, session, op.line) if record.sequence > op.value)
        case "find":
            own = [(name, replace(line, records=_read(database, session, name))) for name, line in database.lines]
            return world, found(own, *op.value)
        case "append":
            return _append(world, who, session, op.line or "", op.value)
        case "rollback":
            return _put(world, who, None), None
        case "commit":
            return _commit(_put(world, who, None), who, session), None
    raise AssertionError(op)


def _read(database: State, session: Transaction, name: str | None) -> tuple[Record, ...]:
    line = database.line(name or "")
    return (*(line.records if line else ()), *(record for own, record in session.written if own == name))


def found(lines: Iterable[tuple[str, Line]], developer: str, request_id: str) -> tuple[LedgerEntry, bytes] | None:
    """Look for what a developer was charged under an id, and the digest of the record before it."""
    for _, line in lines:
        for before, record in zip((None, *line.records), line.records, strict=False):
            if isinstance(record, LedgerEntry) and _is(record, developer, request_id):
                return record, before.chain if before is not None else line.genesis
    return None


def _is(record: Record, developer: str, request_id: str) -> bool:
    return isinstance(record, LedgerEntry) and (record.request.developer, record.request.request_id) == (
        developer,
        request_id,
    )


def _append(world: World, who: int, session: Transaction, name: str, record: Record) -> tuple[World, Any] | None:
    if world.rules.unique:

        def clashes(where: str, other: Record) -> bool:
            if where == name and type(other) is type(record) and other.sequence == record.sequence:
                return True
            return isinstance(record, LedgerEntry) and _is(other, record.request.developer, record.request.request_id)

        if any(clashes(*each) for other in _others(world, who) for each in other.written):
            return None  # until it is known what becomes of the other
        if any(clashes(where, each) for where, line in _database(world, who).lines for each in line.records):
            return _put(world, who, None), TAKEN
    return _put(world, who, replace(session, written=(*session.written, (name, record)))), None


def _commit(world: World, who: int, session: Transaction) -> World:
    for name, genesis in session.begun:
        world = _happened(world, Begun(name, genesis))
    for name, record in session.written:
        if world.strays[who]:
            assert world.old is not None
            lines = tuple(
                (each, replace(line, records=(*line.records, record)) if each == name else line)
                for each, line in world.old.lines
            )
            world = replace(_happened(world, Strayed(name, record)), old=replace(world.old, lines=lines))
        else:
            world = replace(_happened(world, Committed(name, record)), commits=(*world.commits, name))
    return world
