"""A ledger in a SQLite file: its tables, its connection, and how records are written and read. It has one chain."""

from __future__ import annotations

import contextlib
import heapq
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from compliance.ledger.entries import (
    COLUMNS,
    TABLES,
    LedgerEntry,
    LedgerError,
    Record,
    another_format,
    columns_of,
    entry_of,
    record_of,
    table_of,
    taken_out,
)
from compliance.ledger.head import Head, sync_folder
from compliance.ledger.store import LedgerUnavailable

CHAIN = ""
"""Name of the only chain."""

APPLICATION_ID = 0x46574C44
_FORMAT = 3

_BUSY_SECONDS = 10.0
"""Seconds to wait for another process that writes."""

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
    f"PRAGMA application_id = {APPLICATION_ID}",
    f"PRAGMA user_version = {_FORMAT}",
)

_EXTENSIONS = {2: (_ADMISSIONS, f"PRAGMA user_version = {_FORMAT}")}
"""Statements that turn a ledger of an older format into this one: all that it holds means the same."""

_BY_TIME = "CREATE INDEX IF NOT EXISTS answered ON entries (developer, time)"
"""For speed alone: an older service may use a file that has this index, and this service a file without it."""

_HEAD = """SELECT sequence, chain FROM (
    SELECT * FROM (SELECT sequence, chain FROM entries ORDER BY sequence DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT sequence, chain FROM terms ORDER BY sequence DESC LIMIT 1)
    UNION ALL SELECT * FROM (SELECT sequence, chain FROM admissions ORDER BY sequence DESC LIMIT 1)
    UNION ALL SELECT 0, chain FROM genesis) ORDER BY sequence DESC LIMIT 1"""

_ENTRIES = f"SELECT {COLUMNS['entries']} FROM entries"  # noqa: S608
_CHAIN = """SELECT chain FROM entries WHERE sequence = :n UNION ALL SELECT chain FROM terms WHERE sequence = :n
    UNION ALL SELECT chain FROM admissions WHERE sequence = :n UNION ALL SELECT chain FROM genesis WHERE :n = 0"""


class SqliteSession:
    """A transaction of a SQLite file, see `compliance.ledger.store.StoreTransaction`. It has one chain."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def chains(self) -> tuple[str, ...]:
        return (CHAIN,)

    def genesis(self, chain: str = CHAIN) -> bytes:
        begun = self._db.execute("SELECT chain FROM genesis").fetchone()
        if begun is None or not isinstance(begun[0], bytes):
            raise LedgerError("what its chain starts from was changed: bring back an untouched copy of the ledger")
        return begun[0]

    def begin(self, chain: str, genesis: bytes) -> None:
        self._db.execute("UPDATE genesis SET chain = ?", (genesis,))

    def head(self, chain: str = CHAIN) -> Head:
        return Head(*self._db.execute(_HEAD).fetchone())

    def records(self, chain: str = CHAIN, after: int = 0) -> Iterator[Record]:
        parts = [self._records(table, after) for table in TABLES]
        return heapq.merge(*parts, key=lambda record: record.sequence)

    def _records(self, table: str, after: int) -> Iterator[Record]:
        select = f"SELECT {COLUMNS[table]} FROM {table} WHERE sequence > ? ORDER BY sequence"  # noqa: S608
        return (record_of(table, row) for row in self._db.execute(select, (after,)))

    def append(self, chain: str, record: Record) -> None:
        row = (*columns_of(record), record.chain, record.mac)
        self._db.execute(f"INSERT INTO {table_of(record)} VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608

    def find(self, developer: str, request_id: str) -> tuple[LedgerEntry, bytes] | None:
        row = self._db.execute(_ENTRIES + " WHERE developer = ? AND request_id = ?", (developer, request_id)).fetchone()
        if row is None:
            return None
        entry = entry_of(row)
        before = self._db.execute(_CHAIN, {"n": entry.sequence - 1}).fetchone()
        if before is None:
            raise taken_out(entry.sequence - 1)
        return entry, bytes(before[0])

    def entries(self, dataset: str) -> tuple[LedgerEntry, ...]:
        rows = self._db.execute(_ENTRIES + " WHERE dataset = ? ORDER BY sequence", (dataset,))
        return tuple(map(entry_of, rows))

    def answered(self, developer: str, after: float, before: float, most: int) -> int:
        among = "SELECT 1 FROM entries WHERE developer = ? AND time > ? AND time < ? LIMIT ?"
        counted = self._db.execute(f"SELECT count(*) FROM ({among})", (developer, after, before, most))  # noqa: S608
        return int(counted.fetchone()[0])

    def probe(self) -> None:
        self._db.execute("UPDATE probe SET written = written + 1")


class SqliteStore:
    """A SQLite file as a store, see `compliance.ledger.store.Store`; any number of processes may use one.

    `path`: on a local disk; made if absent.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self._lock = threading.Lock()
        with explained(self.name):
            self.db = connect(path)
            try:
                _check_format(self.db)
            except BaseException:
                self.db.close()
                raise

    def chain_of(self, dataset: str) -> str:
        return CHAIN

    @contextmanager
    def session(self, chain: str | None) -> Iterator[SqliteSession]:
        # One connection for all threads, with explicit transactions.
        with self._lock, explained(self.name):
            try:
                if self.db.in_transaction:  # left open if even the rollback failed
                    self.db.execute("ROLLBACK")
                self.db.execute("BEGIN IMMEDIATE")
                yield SqliteSession(self.db)
                self.db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    if self.db.in_transaction:
                        self.db.execute("ROLLBACK")
                raise

    def glance(self, chain: str) -> AbstractContextManager[SqliteSession]:
        return self.session(chain)

    @contextmanager
    def turn(self, developer: str) -> Iterator[None]:
        # A process whose request was answered elsewhere meanwhile finds that answer, and drops its own.
        yield

    def close(self) -> None:
        with self._lock:  # a write in progress when a service ends is completed
            self.db.close()


@contextmanager
def reading(path: Path, *, untouched: bool = False) -> Iterator[SqliteSession]:
    """Open a file for reading at one moment, see `compliance.ledger.place.reading`."""
    with explained(str(path)):
        if not path.is_file():
            raise LedgerError("there is no such file")
        alone = untouched and not path.with_name(f"{path.name}-wal").exists()
        how = "immutable=1" if alone else "mode=ro"
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None)) as db:
            db.execute("BEGIN")
            _check_format(db)
            yield SqliteSession(db)


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn errors into LedgerError or LedgerUnavailable of one line that names the ledger."""
    try:
        yield
    except (LedgerError, LedgerUnavailable) as error:
        raise type(error)(f"{name}: {error}") from error.__cause__
    except sqlite3.OperationalError as error:
        raise LedgerUnavailable(f"{name}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise LedgerError(f"{name}: {error}: bring back an untouched copy of the ledger") from error


def connect(path: Path) -> sqlite3.Connection:
    """Open a ledger's file, and create its tables if it is new."""
    if not path.exists():
        # Not made by SQLite, so that no other user can read it, and its name is durable.
        try:
            os.close(os.open(path, os.O_CREAT, 0o600))
            sync_folder(path.parent)
        except OSError as error:
            raise LedgerUnavailable(str(error)) from error
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        set_journal(db, "WAL")  # writes go to a log first
        db.execute("PRAGMA synchronous = FULL")
        db.execute("BEGIN IMMEDIATE")
        if not db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in _SCHEMA:
                db.execute(statement)
            db.execute("INSERT INTO genesis VALUES (?)", (secrets.token_bytes(32),))
        elif db.execute("PRAGMA application_id").fetchone()[0] == APPLICATION_ID:
            for statement in _EXTENSIONS.get(db.execute("PRAGMA user_version").fetchone()[0], ()):
                db.execute(statement)
        db.execute("COMMIT")
        with contextlib.suppress(sqlite3.DatabaseError):  # no ledger, or a full disk: the next read reports it
            db.execute(_BY_TIME)
    except BaseException:
        db.close()
        raise
    return db


def set_journal(db: sqlite3.Connection, mode: str) -> None:
    """Set the file's journal mode, with retries: SQLite does not wait here while another process uses the file."""
    until = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            db.execute(f"PRAGMA journal_mode = {mode}")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def _check_format(db: sqlite3.Connection) -> None:
    """Raise LedgerError for a file that is no ledger of this format."""
    if db.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise LedgerError("it is not a ledger: name the service's ledger file")
    written = db.execute("PRAGMA user_version").fetchone()[0]
    if written in _EXTENSIONS:
        raise LedgerError(f"it is of format {written}: start this fairwall's service, which makes it format {_FORMAT}")
    if written != _FORMAT:
        raise another_format(written, _FORMAT)
