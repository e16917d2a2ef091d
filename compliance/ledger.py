"""The ledger: what each data set may lose in privacy, what it has lost, and every answer that was bought.

A retry never buys a second noise sample: under one request id there is one answer, and charge and answer are one
durable transaction that is over before the answer is given. Records are only ever added, each chained to the one
before; where the chain ends is sealed outside the ledger's folder (`compliance.seal`), so that an old copy of the
ledger is known for one.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import heapq
import json
import os
import secrets
import sqlite3
import threading
import time
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from compliance.accountant import FREE, Budget, Law, Loss, Neighbours, Rule
from compliance.seal import Head, Seal, SealError, sync_folder
from fairwall.rpc.errors import Refusal
from fairwall.wire.v1 import error_pb2

_APPLICATION_ID = 0x46574C44
_FORMAT = 1

_BUSY_SECONDS = 10.0
"""How long to wait for another process that writes. A transaction lasts as long as its answer takes to compute."""

_SCHEMA = (
    "CREATE TABLE genesis (chain BLOB NOT NULL)",
    """CREATE TABLE terms (sequence INTEGER PRIMARY KEY, dataset TEXT NOT NULL, developer TEXT NOT NULL,
       neighbours TEXT NOT NULL, rule TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, time REAL NOT NULL,
       chain BLOB NOT NULL)""",
    """CREATE TABLE entries (sequence INTEGER PRIMARY KEY, dataset TEXT NOT NULL, developer TEXT NOT NULL,
       request_id TEXT NOT NULL, digest BLOB NOT NULL, metric TEXT NOT NULL, mechanism TEXT NOT NULL,
       neighbours TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, law TEXT NOT NULL,
       multiplier REAL NOT NULL, released BLOB NOT NULL, facts BLOB NOT NULL, remaining REAL NOT NULL,
       time REAL NOT NULL, chain BLOB NOT NULL, UNIQUE (developer, request_id))""",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_FORMAT}",
)

_HEAD = """SELECT sequence, chain FROM (
    SELECT * FROM (SELECT sequence, chain FROM entries ORDER BY sequence DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT sequence, chain FROM terms ORDER BY sequence DESC LIMIT 1)
    UNION ALL SELECT 0, chain FROM genesis) ORDER BY sequence DESC LIMIT 1"""

_TERMS = "SELECT sequence, dataset, developer, neighbours, rule, epsilon, delta, time, chain FROM terms"
_ENTRIES = """SELECT sequence, dataset, developer, request_id, digest, metric, mechanism, neighbours, epsilon, delta,
    law, multiplier, released, facts, remaining, time, chain FROM entries"""


class LedgerError(Exception):
    """A ledger that must not be used, or not like this. The text says in one line what to do."""


class LedgerUnavailable(Exception):
    """The ledger cannot be written at present. The text says in one line why; no answer has left."""


@dataclass(frozen=True)
class Terms:
    """One record of what may be spent; the last one for its data set and developer holds.

    Parameters
    ----------
    sequence : int
    dataset : str
    developer : str
        Empty for the data set as a whole.
    neighbours : Neighbours
        The relation that the budget is stated for.
    budget : Budget
    time : float
        Seconds since 1970, as every time here.
    chain : bytes
        The digest of this record and all before.
    """

    sequence: int
    dataset: str
    developer: str
    neighbours: Neighbours
    budget: Budget
    time: float
    chain: bytes


@dataclass(frozen=True)
class Request:
    """What a developer asks, and what it costs.

    Parameters
    ----------
    dataset, developer : str
    request_id : str
        The developer's own name for the request.
    digest : bytes
        Of everything that is asked, the data set included.
    metric, mechanism : str
    neighbours : Neighbours
        The relation that the loss is stated for.
    loss : Loss
    """

    dataset: str
    developer: str
    request_id: str
    digest: bytes
    metric: str
    mechanism: str
    neighbours: Neighbours
    loss: Loss


@dataclass(frozen=True)
class Reply:
    """What a request buys.

    Parameters
    ----------
    answer : bytes
        What goes to the developer, and goes again on a repeat.
    facts : bytes
        What else the loss has paid for, which later answers to the same developer may use at no cost.
    """

    answer: bytes
    facts: bytes = b""


@dataclass(frozen=True)
class Entry:
    """One request that was charged and answered.

    Parameters
    ----------
    sequence : int
    request : Request
    reply : Reply
    remaining : float
        What the developer could still spend after it, in epsilon.
    time : float
    chain : bytes
        The digest of this record and all before.
    """

    sequence: int
    request: Request
    reply: Reply
    remaining: float
    time: float
    chain: bytes


@dataclass(frozen=True)
class Standing:
    """How a data set stands, or a developer on it.

    Parameters
    ----------
    budget : Budget or None
        None if none was set, and nothing can be charged.
    spent : float
        In epsilon, by the budget's rule and at its delta.
    remaining : float
        In epsilon; a developer's is never more than the data set's.
    """

    budget: Budget | None
    spent: float
    remaining: float


_Record = TypeVar("_Record", Terms, Entry)


class Books:
    """What the records of a ledger add up to.

    Parameters
    ----------
    genesis : bytes
        What the chain starts from: random, so that no two ledgers have a digest in common.
    """

    def __init__(self, genesis: bytes) -> None:
        self.before: Head | None = None
        self.head = Head(0, genesis)
        self.neighbours: dict[str, Neighbours] = {}
        self._budgets: dict[tuple[str, str], Budget] = {}
        self._losses: defaultdict[tuple[str, str], Counter[Loss]] = defaultdict(Counter)
        self._facts: defaultdict[tuple[str, str], list[bytes]] = defaultdict(list)

    @property
    def accounts(self) -> tuple[tuple[str, str], ...]:
        """Every data set (with developer empty) and every developer on it, in order."""
        return tuple(sorted(self._budgets))

    def add(self, record: Terms | Entry) -> None:
        """Count one more record.

        Raises
        ------
        LedgerError
            If it does not continue the chain.
        """
        if record.sequence != self.head.sequence + 1 or record.chain != _link(self.head, record):
            raise LedgerError(
                f"the chain breaks at record {self.head.sequence + 1}, which was changed or taken out: "
                "bring back an untouched copy of the ledger"
            )
        if isinstance(record, Terms):
            self.neighbours[record.dataset] = record.neighbours
            self._budgets[record.dataset, record.developer] = record.budget
        else:
            asked = record.request
            for developer in ("", asked.developer):
                if asked.loss != FREE:
                    self._losses[asked.dataset, developer][asked.loss] += 1
            if record.reply.facts:
                self._facts[asked.dataset, asked.developer].append(record.reply.facts)
        self.before, self.head = self.head, Head(record.sequence, record.chain)

    def budget(self, dataset: str, developer: str = "") -> Budget | None:
        """Return the budget of a data set, or of a developer on it; None if none was set."""
        return self._budgets.get((dataset, developer))

    def losses(self, dataset: str, developer: str = "") -> Counter[Loss]:
        """Return what was charged to a data set, or to a developer on it."""
        return Counter(self._losses.get((dataset, developer), ()))

    def facts(self, dataset: str, developer: str) -> tuple[bytes, ...]:
        """Return the facts that a developer's charges on a data set have paid for, in order."""
        return tuple(self._facts.get((dataset, developer), ()))

    def standing(self, dataset: str, developer: str = "") -> Standing:
        """Return how a data set stands, or a developer on it."""
        budget = self.budget(dataset, developer)
        spent = budget.spent(self.losses(dataset, developer)) if budget else 0.0
        return Standing(budget, spent, self._remaining(dataset, developer, Counter()))

    def remaining_after(self, request: Request) -> float:
        """Return what the developer can still be charged once a request is."""
        more = Counter(() if request.loss == FREE else (request.loss,))
        return self._remaining(request.dataset, request.developer, more)

    def affords(self, request: Request) -> bool:
        """Return whether both the data set's budget and the developer's share of it cover a request."""
        budgets = ((name, self.budget(request.dataset, name)) for name in ("", request.developer))
        return all(
            budget is not None
            and (request.loss == FREE or budget.affords(self.losses(request.dataset, name), request.loss))
            for name, budget in budgets
        )

    def _remaining(self, dataset: str, developer: str, more: Counter[Loss]) -> float:
        budgets = ((name, self.budget(dataset, name)) for name in {"", developer})
        return min(budget.remaining(self.losses(dataset, name) + more) if budget else 0.0 for name, budget in budgets)


class Ledger:
    """The ledger of a compliance service; any number of threads and processes may use one file.

    Parameters
    ----------
    path : Path, optional
        The SQLite file, made where there is none; on a local disk. Without it the ledger lives in memory, for a game.
    seal : Seal, optional
        Without it an old copy of the ledger passes for the ledger.

    Raises
    ------
    LedgerError
        If the file is no ledger, its chain is broken, or it is not the one that was sealed last.
    LedgerUnavailable
        If it cannot be read or written now.
    """

    def __init__(self, path: Path | None = None, seal: Seal | None = None) -> None:
        if path and seal and seal.path.resolve().is_relative_to(path.resolve().parent):
            raise LedgerError(
                f"{seal.path}: inside the ledger's folder, whose backups would hold it: keep the head elsewhere"
            )
        self._name = str(path or "the ledger in memory")
        self._seal = seal
        self._lock = threading.Lock()
        with _explained(self._name):
            self._db = _connect(path)
        self.close = weakref.finalize(self, self._db.close)
        """Closes the ledger; to call it is not necessary, and nothing else may be called after it."""
        try:
            with _explained(self._name):
                self._books = Books(_genesis(self._db))
            with self._transaction():
                pass
        except BaseException:
            self.close()
            raise

    def set_budget(self, dataset: str, neighbours: Neighbours, budget: Budget) -> None:
        """Set what a data set may lose in all; setting what holds already changes nothing.

        Raises
        ------
        LedgerError
            If the data set has a budget for another relation or under another rule: what was charged in one unit is
            not counted in another.
        LedgerUnavailable
        """
        with self._transaction():
            present, relation = self._books.budget(dataset), self._books.neighbours.get(dataset)
            if present and (present.rule, relation) != (budget.rule, neighbours):
                raise LedgerError(
                    f"data set {dataset}: its budget is by {present.rule} composition per {relation}, not by "
                    f"{budget.rule} per {neighbours}: open another data set for other units"
                )
            self._agree(dataset, "", neighbours, budget)
        self._seal_head()

    def allocate(self, dataset: str, developer: str, epsilon: float, delta: float = 0.0) -> None:
        """Set a developer's share of a data set's budget, by the same rule; setting what holds changes nothing.

        Shares may add up to more than the budget, which holds regardless.

        Raises
        ------
        LedgerError
            If the data set has no budget, or the developer no name.
        LedgerUnavailable
        """
        with self._transaction():
            whole = self._books.budget(dataset)
            if not whole or not developer:
                raise LedgerError(f"data set {dataset}: set its budget before a developer's share of it")
            share = Budget(epsilon, delta, whole.rule)
            self._agree(dataset, developer, self._books.neighbours[dataset], share)
        self._seal_head()

    def settle(self, request: Request, answer: Callable[[tuple[bytes, ...]], Reply]) -> Entry:
        """Charge a request and store its answer, or find the answer that it has bought already.

        Parameters
        ----------
        request : Request
        answer : callable
            Computes the answer, given the facts that the developer's earlier requests have paid for. Called only when
            the charge is covered, while everybody else waits; if it raises, nothing is charged.

        Returns
        -------
        Entry
            Durable: charge and answer survive whatever happens next.

        Raises
        ------
        Refusal
            ``REQUEST_ID_REUSED`` if the id stands for another request, ``BUDGET_EXHAUSTED`` if the developer's share or
            the data set's budget does not cover the loss. Nothing is charged then.
        LedgerError
            If the loss is stated for another relation than the budget, or the ledger must not be used.
        LedgerUnavailable
            If it cannot be written; the same request may be sent again.
        """
        with self._transaction():
            entry = self._find(request) or self._charge(request, answer)
        self._seal_head()
        return entry

    def standing(self, dataset: str, developer: str = "") -> Standing:
        """Return how a data set stands, or a developer on it, the charges of other processes counted too."""
        with self._transaction():
            return self._books.standing(dataset, developer)

    def facts(self, dataset: str, developer: str) -> tuple[bytes, ...]:
        """Return the facts that a developer's charges on a data set have paid for, in order."""
        with self._transaction():
            return self._books.facts(dataset, developer)

    def entries(self, dataset: str) -> tuple[Entry, ...]:
        """Return what was charged to a data set, in order."""
        with self._transaction():
            rows = self._db.execute(_ENTRIES + " WHERE dataset = ? ORDER BY sequence", (dataset,))
            return tuple(map(_entry, rows))

    def _find(self, request: Request) -> Entry | None:
        row = self._db.execute(
            _ENTRIES + " WHERE developer = ? AND request_id = ?", (request.developer, request.request_id)
        ).fetchone()
        if row is None:
            return None
        entry = _entry(row)
        if (entry.request.digest, entry.request.dataset) != (request.digest, request.dataset):
            raise Refusal(error_pb2.REASON_REQUEST_ID_REUSED)
        return entry

    def _charge(self, request: Request, answer: Callable[[tuple[bytes, ...]], Reply]) -> Entry:
        books = self._books
        relation = books.neighbours.get(request.dataset)
        if relation is None:
            raise LedgerError(f"data set {request.dataset}: it has no budget: set one")
        if relation is not request.neighbours:
            raise LedgerError(
                f"data set {request.dataset}: a loss per {request.neighbours} is not added to a budget per {relation}"
            )
        if not request.developer or not books.affords(request):
            raise Refusal(error_pb2.REASON_BUDGET_EXHAUSTED)
        reply = answer(books.facts(request.dataset, request.developer))
        return self._append(
            Entry(books.head.sequence + 1, request, reply, books.remaining_after(request), time.time(), b"")
        )

    def _agree(self, dataset: str, developer: str, neighbours: Neighbours, budget: Budget) -> None:
        if self._books.budget(dataset, developer) != budget:
            self._append(Terms(self._books.head.sequence + 1, dataset, developer, neighbours, budget, time.time(), b""))

    def _append(self, record: _Record) -> _Record:
        chained: _Record = dataclasses.replace(record, chain=_link(self._books.head, record))
        row = (*_row(chained), chained.chain)
        table = "terms" if isinstance(chained, Terms) else "entries"
        self._db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608
        return chained

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Be alone with the ledger, with the books up to date and their head sealed; then commit."""
        with self._lock, _explained(self._name):
            try:
                if self._db.in_transaction:  # left open where even the rollback failed
                    self._db.execute("ROLLBACK")
                self._db.execute("BEGIN IMMEDIATE")
                self._catch_up()
                self._check_seal()
                yield
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    if self._db.in_transaction:
                        self._db.execute("ROLLBACK")
                raise

    def _catch_up(self) -> None:
        """Count what was committed since, by whichever process. The books learn of a record in no other way."""
        head = Head(*self._db.execute(_HEAD).fetchone())
        if head == self._books.head:
            return
        for record in _records(self._db, self._books.head.sequence):
            self._books.add(record)
        if head != self._books.head:
            raise LedgerError(
                "the ledger was replaced while it was in use: stop the service and bring back the newest copy"
            )

    def _check_seal(self) -> None:
        """Seal the head if the last record is not sealed yet; refuse a ledger that is not the one sealed last.

        Every seal is written by who holds the write lock, and before the next record is: so the ledger is never more
        than one record ahead, also when processes race or die.
        """
        if self._seal is None:
            return
        try:
            sealed = self._seal.read()
            books = self._books
            if sealed == books.head:
                return
            if sealed == books.before:  # both None: a ledger in which nothing is recorded yet
                self._seal.write(books.head)
                return
        except SealError as error:
            raise LedgerError(str(error)) from None
        except OSError as error:
            raise LedgerUnavailable(f"the ledger's head cannot be sealed: {error}") from error
        if sealed is None:
            raise LedgerError(f"the sealed head is missing: bring {self._seal.path} back")
        if sealed.sequence > books.head.sequence:
            raise LedgerError(
                f"it is an old copy: it ends at record {books.head.sequence}, and {sealed.sequence} was sealed: "
                "bring back the newest copy, for what it has charged counts"
            )
        raise LedgerError(
            f"it is not the ledger that was sealed as {self._seal.path}: bring back the ledger and the head that "
            "belong together"
        )

    def _seal_head(self) -> None:
        """Seal what was just committed, before anybody hears of it."""
        if self._seal is not None:
            with self._transaction():
                pass


@dataclass(frozen=True)
class Inspection:
    """A ledger as somebody finds it who only reads it.

    Parameters
    ----------
    books : Books
        What the records add up to, as far as the chain is whole.
    records : tuple of Terms or Entry
        Those that are in the books, in order.
    fault : str
        What is wrong with the chain; empty if it is whole.
    """

    books: Books
    records: tuple[Terms | Entry, ...]
    fault: str


def inspect(path: Path) -> Inspection:
    """Read a ledger without changing it, also while a service uses it, and without its seal.

    Raises
    ------
    LedgerError
        If the file is no ledger.
    LedgerUnavailable
        If it cannot be read.
    """
    with _explained(str(path)):
        if not path.is_file():
            raise LedgerError("there is no such file")
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as db:
            db.execute("BEGIN")
            books, records = Books(_genesis(db)), []
            try:
                for record in _records(db, 0):
                    books.add(record)
                    records.append(record)
            except LedgerError as error:
                return Inspection(books, tuple(records), str(error))
            return Inspection(books, tuple(records), "")


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Say in one line what is wrong, and with which ledger."""
    try:
        yield
    except (LedgerError, LedgerUnavailable) as error:
        raise type(error)(f"{name}: {error}") from error.__cause__
    except sqlite3.OperationalError as error:
        raise LedgerUnavailable(f"{name}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise LedgerError(f"{name}: {error}: bring back an untouched copy of the ledger") from error


def _connect(path: Path | None) -> sqlite3.Connection:
    """Open a ledger's file, and lay it out if it is new."""
    if path is not None and not path.exists():
        # Not by SQLite, so that it is nobody else's to read, and its name durable.
        try:
            os.close(os.open(path, os.O_CREAT, 0o600))
            sync_folder(path.parent)
        except OSError as error:
            raise LedgerUnavailable(str(error)) from error
    # One connection for all threads, under the ledger's own lock; transactions are begun and ended in so many words.
    db = sqlite3.connect(path or ":memory:", timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        if path is not None:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
        db.execute("BEGIN IMMEDIATE")
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute("INSERT INTO genesis VALUES (?)", (secrets.token_bytes(32),))
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _genesis(db: sqlite3.Connection) -> bytes:
    if db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise LedgerError("it is not a ledger: name the service's ledger file")
    written = db.execute("PRAGMA user_version").fetchone()[0]
    if written != _FORMAT:
        raise LedgerError(f"it is of format {written}: use the fairwall that wrote it, this one reads format {_FORMAT}")
    genesis: bytes = db.execute("SELECT chain FROM genesis").fetchone()[0]
    return genesis


def _records(db: sqlite3.Connection, after: int) -> Iterator[Terms | Entry]:
    """Read the records behind a sequence number, in order."""
    behind = " WHERE sequence > ? ORDER BY sequence"
    terms: Iterator[Terms | Entry] = map(_terms, db.execute(_TERMS + behind, (after,)))
    entries: Iterator[Terms | Entry] = map(_entry, db.execute(_ENTRIES + behind, (after,)))
    try:
        yield from heapq.merge(terms, entries, key=lambda record: record.sequence)
    except (ValueError, TypeError) as error:
        raise LedgerError(f"a record was changed ({error}): bring back an untouched copy of the ledger") from error


def _terms(row: tuple[Any, ...]) -> Terms:
    sequence, dataset, developer, neighbours, rule, epsilon, delta, at, chain = row
    return Terms(sequence, dataset, developer, Neighbours(neighbours), Budget(epsilon, delta, Rule(rule)), at, chain)


def _entry(row: tuple[Any, ...]) -> Entry:
    sequence, dataset, developer, request_id, digest, metric, mechanism, neighbours = row[:8]
    epsilon, delta, law, multiplier, answer, facts, remaining, at, chain = row[8:]
    loss = Loss(epsilon, delta, Law(law), multiplier)
    request = Request(dataset, developer, request_id, digest, metric, mechanism, Neighbours(neighbours), loss)
    return Entry(sequence, request, Reply(answer, facts), remaining, at, chain)


def _row(record: Terms | Entry) -> tuple[int | float | str | bytes, ...]:
    """Lay a record out in the order of its columns, but for the chain. Floats are floats: a digest tells 1 from 1.0."""
    if isinstance(record, Terms):
        who = (record.sequence, record.dataset, record.developer)
        budget = record.budget
        terms = (record.neighbours.value, budget.rule.value, float(budget.epsilon), float(budget.delta))
        return (*who, *terms, record.time)
    asked, loss, reply = record.request, record.request.loss, record.reply
    who = (record.sequence, asked.dataset, asked.developer)
    what = (asked.request_id, asked.digest, asked.metric, asked.mechanism, asked.neighbours.value)
    charge = (float(loss.epsilon), float(loss.delta), loss.law.value, float(loss.multiplier))
    return (*who, *what, *charge, reply.answer, reply.facts, float(record.remaining), record.time)


def _link(before: Head, record: Terms | Entry) -> bytes:
    """Return the digest of a record and, through its predecessor's, of all records before."""
    values = [value.hex() if isinstance(value, bytes) else value for value in _row(record)]
    text = json.dumps([type(record).__name__, *values])
    return hashlib.sha256(before.chain + text.encode()).digest()
