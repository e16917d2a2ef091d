"""The ledger's file: its layout in SQLite, how it is opened, and how records are written and read."""

from __future__ import annotations

import heapq
import json
import os
import secrets
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compliance.ledger.accountant import Budget, Law, Loss, Neighbours, Rule
from compliance.ledger.entries import (
    Admission,
    Books,
    Entry,
    LedgerError,
    Record,
    Reply,
    Request,
    Served,
    Terms,
    columns_of,
)
from compliance.ledger.head import Head, sync_folder
from fairwall.errors import UserError

_APPLICATION_ID = 0x46574C44
_FORMAT = 3

_BUSY_SECONDS = 10.0
"""How long to wait for another process that writes."""

_ADMISSIONS = """CREATE TABLE admissions (sequence INTEGER PRIMARY KEY, policy BLOB NOT NULL, served TEXT NOT NULL,
    time REAL NOT NULL, chain BLOB NOT NULL, mac BLOB NOT NULL)"""

_SCHEMA = (
    "CREATE TABLE genesis (chain BLOB NOT NULL)",
    """CREATE TABLE terms (sequence INTEGER PRIMARY KEY, dataset TEXT NOT NULL, developer TEXT NOT NULL,
       neighbours TEXT NOT NULL, rule TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, data BLOB NOT NULL,
       time REAL NOT NULL, chain BLOB NOT NULL, mac BLOB NOT NULL)""",
    """CREATE TABLE entries (sequence INTEGER PRIMARY KEY, dataset TEXT NOT NULL, developer TEXT NOT NULL,
       request_id TEXT NOT NULL, digest BLOB NOT NULL, metric TEXT NOT NULL, mechanism TEXT NOT NULL,
       neighbours TEXT NOT NULL, epsilon REAL NOT NULL, delta REAL NOT NULL, law TEXT NOT NULL,
       multiplier REAL NOT NULL, released BLOB NOT NULL, facts BLOB NOT NULL, remaining REAL NOT NULL,
       time REAL NOT NULL, chain BLOB NOT NULL, mac BLOB NOT NULL, UNIQUE (developer, request_id))""",
    _ADMISSIONS,
    "CREATE TABLE probe (written INTEGER NOT NULL)",
    "INSERT INTO probe VALUES (0)",
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_FORMAT}",
)

_EXTENSIONS = {2: (_ADMISSIONS, f"PRAGMA user_version = {_FORMAT}")}
"""What makes a ledger of an older format one of this: all that it holds means the same."""

_HEAD = """SELECT sequence, chain FROM (
    SELECT * FROM (SELECT sequence, chain FROM entries ORDER BY sequence DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT sequence, chain FROM terms ORDER BY sequence DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT sequence, chain FROM admissions ORDER BY sequence DESC LIMIT 1)
    UNION ALL SELECT 0, chain FROM genesis) ORDER BY sequence DESC LIMIT 1"""

_TERMS = "SELECT sequence, dataset, developer, neighbours, rule, epsilon, delta, data, time, chain, mac FROM terms"
_ADMITTED = "SELECT sequence, policy, served, time, chain, mac FROM admissions"
_ENTRIES = """SELECT sequence, dataset, developer, request_id, digest, metric, mechanism, neighbours, epsilon, delta,
    law, multiplier, released, facts, remaining, time, chain, mac FROM entries"""
_CHAIN = """SELECT chain FROM entries WHERE sequence = :n UNION ALL SELECT chain FROM terms WHERE sequence = :n
    UNION ALL SELECT chain FROM admissions WHERE sequence = :n UNION ALL SELECT chain FROM genesis WHERE :n = 0"""


# A digest of a record takes bytes for their hexadecimal digits: which of the two a column holds is looked at besides.
_TERMS_TYPES = (int, str, str, str, str, float, float, bytes, float, bytes, bytes)
_ADMISSION_TYPES = (int, bytes, str, float, bytes, bytes)
_ENTRY_TYPES = (
    *(int, str, str, str, bytes, str, str, str, float, float),
    *(str, float, bytes, bytes, float, float, bytes, bytes),
)


class LedgerUnavailable(UserError):
    """The ledger cannot be written at present. The text says in one line why; no answer has left."""


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Say in one line what is wrong, and with which ledger."""
    try:
        yield
    except (LedgerError, LedgerUnavailable) as error:
        raise type(error)(f"{name}: {error}") from error.__cause__
    except sqlite3.OperationalError as error:
        raise LedgerUnavailable(f"{name}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise LedgerError(f"{name}: {error}: bring back an untouched copy of the ledger") from error


def connect(path: Path | None) -> sqlite3.Connection:
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
            _log_ahead(db)
            db.execute("PRAGMA synchronous = FULL")
        db.execute("BEGIN IMMEDIATE")
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute("INSERT INTO genesis VALUES (?)", (secrets.token_bytes(32),))
        elif db.execute("PRAGMA application_id").fetchone()[0] == _APPLICATION_ID:
            for statement in _EXTENSIONS.get(db.execute("PRAGMA user_version").fetchone()[0], ()):
                db.execute(statement)
        db.execute("COMMIT")
    except BaseException:
        db.close()
        raise
    return db


def _log_ahead(db: sqlite3.Connection) -> None:
    """Have writes go to a log first. It is set once for a file, and while another sets it SQLite does not wait."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def genesis_of(db: sqlite3.Connection) -> bytes:
    """Return what a ledger's chain starts from, once it is known for a ledger that can be read."""
    if db.execute("PRAGMA application_id").fetchone()[0] != _APPLICATION_ID:
        raise LedgerError("it is not a ledger: name the service's ledger file")
    written = db.execute("PRAGMA user_version").fetchone()[0]
    if written in _EXTENSIONS:
        raise LedgerError(f"it is of format {written}: start this fairwall's service, which makes it format {_FORMAT}")
    if written != _FORMAT:
        raise LedgerError(
            f"it is of format {written}, and this fairwall reads format {_FORMAT}: use the one that wrote it, or begin "
            "another ledger with what is left of the budget"
        )
    begun = db.execute("SELECT chain FROM genesis").fetchone()
    if begun is None or not isinstance(begun[0], bytes):
        raise LedgerError("what its chain starts from was changed: bring back an untouched copy of the ledger")
    return begun[0]


def head_of(db: sqlite3.Connection) -> Head:
    """Return where a ledger's file ends."""
    return Head(*db.execute(_HEAD).fetchone())


def records(db: sqlite3.Connection, after: int) -> Iterator[Record]:
    """Read the records behind a sequence number, in order."""
    behind = " WHERE sequence > ? ORDER BY sequence"
    kinds = ((_TERMS, _terms), (_ADMITTED, _admission), (_ENTRIES, _entry))
    parts: list[Iterator[Record]] = [map(made, db.execute(select + behind, (after,))) for select, made in kinds]
    try:
        yield from heapq.merge(*parts, key=lambda record: record.sequence)
    except (ValueError, TypeError) as error:
        raise LedgerError(f"a record was changed ({error}): bring back an untouched copy of the ledger") from error


def entries(db: sqlite3.Connection, dataset: str) -> tuple[Entry, ...]:
    """Read what was charged to a data set, in order."""
    rows = db.execute(_ENTRIES + " WHERE dataset = ? ORDER BY sequence", (dataset,))
    return tuple(map(_entry, rows))


def find(db: sqlite3.Connection, developer: str, request_id: str) -> Entry | None:
    """Read what a developer was charged under a request id; None if nothing was."""
    row = db.execute(_ENTRIES + " WHERE developer = ? AND request_id = ?", (developer, request_id)).fetchone()
    return None if row is None else _entry(row)


def chain_at(db: sqlite3.Connection, sequence: int) -> bytes:
    """Return the digest of a record and all before, as it is written; of no record the one that the chain starts from.

    Raises
    ------
    LedgerError
        If there is no such record.
    """
    row = db.execute(_CHAIN, {"n": sequence}).fetchone()
    if row is None:
        raise LedgerError(f"record {sequence} was taken out: bring back an untouched copy of the ledger")
    return bytes(row[0])


def probe(db: sqlite3.Connection) -> None:
    """Write what stands for nothing: whether the ledger can be written shows once the transaction is over."""
    db.execute("UPDATE probe SET written = written + 1")


def append(db: sqlite3.Connection, record: Record) -> None:
    """Write one more record, which is durable once the transaction is."""
    row = (*columns_of(record), record.chain, record.mac)
    table = {Terms: "terms", Admission: "admissions", Entry: "entries"}[type(record)]
    db.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608


def _terms(row: tuple[Any, ...]) -> Terms:
    _check_types(row, _TERMS_TYPES)
    sequence, dataset, developer, neighbours, rule, epsilon, delta, data, at, chain, mac = row
    budget = Budget(epsilon, delta, Rule(rule))
    return Terms(sequence, dataset, developer, Neighbours(neighbours), budget, at, chain, data, mac)


def _check_types(row: tuple[Any, ...], types: tuple[type, ...]) -> None:
    if tuple(map(type, row)) != types:
        raise TypeError("a value is of another type")


def _admission(row: tuple[Any, ...]) -> Admission:
    _check_types(row, _ADMISSION_TYPES)
    sequence, policy, served, at, chain, mac = row
    each = tuple(
        Served(name, tuple(developers), tuple(metrics), *least)
        for name, developers, metrics, *least in json.loads(served)
    )
    return Admission(sequence, policy, each, at, chain, mac)


def _entry(row: tuple[Any, ...]) -> Entry:
    _check_types(row, _ENTRY_TYPES)
    sequence, dataset, developer, request_id, digest, metric, mechanism, neighbours = row[:8]
    epsilon, delta, law, multiplier, answer, facts, remaining, at, chain, mac = row[8:]
    loss = Loss(epsilon, delta, Law(law), multiplier)
    request = Request(dataset, developer, request_id, digest, metric, mechanism, Neighbours(neighbours), loss)
    return Entry(sequence, request, Reply(answer, facts), remaining, at, chain, mac)


@dataclass(frozen=True)
class Inspection:
    """A ledger as a reader finds it.

    Parameters
    ----------
    books : Books
        What the records add up to, as far as the chain is whole.
    records : tuple of Record
        Those that are in the books, in order.
    fault : str
        What is wrong with the chain; empty if it is whole.
    """

    books: Books
    records: tuple[Record, ...]
    fault: str


def inspect(path: Path, key: bytes = b"") -> Inspection:
    """Read a ledger without changing it, also while a service uses it, and without its seal.

    Parameters
    ----------
    key : bytes
        As in `Books`.

    Raises
    ------
    LedgerError
        If the file is no ledger.
    LedgerUnavailable
        If it cannot be read.
    """
    with explained(str(path)):
        if not path.is_file():
            raise LedgerError("there is no such file")
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as db:
            db.execute("BEGIN")
            books, counted = Books(genesis_of(db), key), []
            try:
                for record in records(db, 0):
                    books.add(record)
                    counted.append(record)
            except LedgerError as error:
                return Inspection(books, tuple(counted), str(error))
            return Inspection(books, tuple(counted), "")
