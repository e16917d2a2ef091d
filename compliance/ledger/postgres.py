"""A ledger in a PostgreSQL database: its tables, its connections, and how records are written and read.

Each data set has its own chain. The holder of a chain holds an advisory lock until the end of its transaction, and
reads committed rows: once it has the lock, these are all that was ever committed, since nobody else writes. That is as
strict as SERIALIZABLE and needs no retries; and as the lock is no row, reading leaves nothing to sync. If a lock were
lost with its connection, two records of one number could not both be committed: the number is the primary key. A
transaction on all chains excludes all others, by a lock that the others share.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

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
from compliance.ledger.head import Head
from compliance.ledger.store import LedgerUnavailable

if TYPE_CHECKING:
    import psycopg

_FORMAT = 1

_SECONDS = 10
"""Seconds to wait for a lock, a connection, or a server that does not answer; also the longest that a service stopped
in the middle of a transaction may hold up the others."""

_PAUSE_MAX = 0.05
"""Longest pause, in seconds, between checks whether another process's turn is over."""

_AT_ONCE = 1_000
"""Records read in one query."""

_IDLE_MAX = 8
"""Most idle connections kept for later."""

_RECORD = "sequence bigint NOT NULL, {columns}, chain bytea NOT NULL, mac bytea NOT NULL, PRIMARY KEY (line, sequence)"

_TYPES = {
    "terms": """dataset text NOT NULL, developer text NOT NULL, neighbours text NOT NULL, rule text NOT NULL,
        epsilon float8 NOT NULL, delta float8 NOT NULL, data bytea NOT NULL, time float8 NOT NULL""",
    "admissions": "policy bytea NOT NULL, served text NOT NULL, time float8 NOT NULL",
    "entries": """dataset text NOT NULL, developer text NOT NULL, request_id text NOT NULL, digest bytea NOT NULL,
        metric text NOT NULL, mechanism text NOT NULL, neighbours text NOT NULL, epsilon float8 NOT NULL,
        delta float8 NOT NULL, law text NOT NULL, multiplier float8 NOT NULL, released bytea NOT NULL,
        facts bytea NOT NULL, remaining float8 NOT NULL, time float8 NOT NULL""",
}

_NAME = "fairwall"

_CONNECTED = """SELECT DISTINCT application_name FROM pg_stat_activity WHERE datname = current_database()
    AND usename = current_user AND pid <> pg_backend_pid() AND application_name LIKE %s ORDER BY 1"""

_SCHEMA = (
    "CREATE SCHEMA fairwall",
    "CREATE TABLE fairwall.format (format integer NOT NULL)",
    f"INSERT INTO fairwall.format VALUES ({_FORMAT})",  # noqa: S608
    "CREATE TABLE fairwall.lines (line text PRIMARY KEY, chain bytea NOT NULL)",
    *(
        f"CREATE TABLE fairwall.{table} (line text NOT NULL, " + _RECORD.format(columns=columns) + ")"
        for table, columns in _TYPES.items()
    ),
    "CREATE UNIQUE INDEX requests ON fairwall.entries (developer, request_id)",
    "CREATE INDEX answered ON fairwall.entries (developer, time)",
    "CREATE TABLE fairwall.probe (written bigint NOT NULL)",
    "INSERT INTO fairwall.probe VALUES (0)",
)
"""A line is a chain's name; `chain` is a digest everywhere."""

_ENTRIES = f"SELECT {COLUMNS['entries']} FROM fairwall.entries"  # noqa: S608
_HEAD = " UNION ALL ".join(
    [
        *(
            f"(SELECT sequence, chain FROM fairwall.{table} WHERE line = %(line)s ORDER BY sequence DESC LIMIT 1)"  # noqa: S608
            for table in TABLES
        ),
        "(SELECT 0, chain FROM fairwall.lines WHERE line = %(line)s)",
    ]
)
_CHAIN = " UNION ALL ".join(
    [
        *(f"SELECT chain FROM fairwall.{table} WHERE line = %(line)s AND sequence = %(n)s" for table in TABLES),  # noqa: S608
        "SELECT chain FROM fairwall.lines WHERE line = %(line)s AND %(n)s = 0",
    ]
)


class PostgresSession:
    """A transaction of a database, see `compliance.ledger.store.StoreTransaction`."""

    def __init__(self, db: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._db = db

    def chains(self) -> tuple[str, ...]:
        return tuple(line for (line,) in self._db.execute("SELECT line FROM fairwall.lines ORDER BY line"))

    def genesis(self, chain: str) -> bytes | None:
        row = self._db.execute("SELECT chain FROM fairwall.lines WHERE line = %s", (chain,)).fetchone()
        return None if row is None else row[0]

    def begin(self, chain: str, genesis: bytes) -> None:
        begun = self._db.execute("INSERT INTO fairwall.lines VALUES (%s, %s) ON CONFLICT DO NOTHING", (chain, genesis))
        if not begun.rowcount:
            raise LedgerError(f"data set {chain}: is there, and is never overwritten")

    def head(self, chain: str) -> Head:
        return max((Head(*row) for row in self._db.execute(_HEAD, {"line": chain})), key=lambda head: head.sequence)

    def records(self, chain: str, after: int) -> Iterator[Record]:
        # Read in batches: an answer is up to some MiB, and a server that hears nothing for long hangs up.
        while True:
            found = sorted(self._behind(chain, after), key=lambda record: record.sequence)
            yield from found[:_AT_ONCE]
            if len(found) < _AT_ONCE:
                return
            after = found[_AT_ONCE - 1].sequence

    def append(self, chain: str, record: Record) -> None:
        row = (chain, *columns_of(record), record.chain, record.mac)
        self._db.execute(f"INSERT INTO fairwall.{table_of(record)} VALUES ({', '.join(['%s'] * len(row))})", row)  # noqa: S608

    def find(self, developer: str, request_id: str) -> tuple[LedgerEntry, bytes] | None:
        where = " WHERE developer = %s AND request_id = %s"
        row = self._db.execute(_ENTRIES.replace(" FROM", ", line FROM") + where, (developer, request_id)).fetchone()
        if row is None:
            return None
        entry = entry_of(row[:-1])
        before = self._db.execute(_CHAIN, {"line": row[-1], "n": entry.sequence - 1}).fetchone()
        if before is None:
            raise taken_out(entry.sequence - 1)
        return entry, before[0]

    def entries(self, dataset: str) -> tuple[LedgerEntry, ...]:
        rows = self._db.execute(_ENTRIES + " WHERE line = %s AND dataset = %s ORDER BY sequence", (dataset, dataset))
        return tuple(map(entry_of, rows))

    def answered(self, developer: str, after: float, before: float, most: int) -> int:
        among = "SELECT 1 FROM fairwall.entries WHERE developer = %s AND time > %s AND time < %s LIMIT %s"
        counted = self._db.execute(f"SELECT count(*) FROM ({among}) AS those", (developer, after, before, most))  # noqa: S608
        (number,) = counted.fetchone() or (0,)
        return int(number)

    def probe(self) -> None:
        self._db.execute("UPDATE fairwall.probe SET written = written + 1")

    def _behind(self, chain: str, after: int) -> list[Record]:
        with self._db.pipeline():  # in one round trip
            cursors = {
                table: self._db.execute(
                    f"SELECT {COLUMNS[table]} FROM fairwall.{table} WHERE line = %s AND sequence > %s "  # noqa: S608
                    f"ORDER BY sequence LIMIT {_AT_ONCE}",
                    (chain, after),
                )
                for table in TABLES
            }
        return [record_of(table, row) for table, cursor in cursors.items() for row in cursor]


class PostgresStore:
    """A PostgreSQL database as a store, see `compliance.ledger.store.Store`; any number of services may use one.

    `url`: ``postgresql://[user@]host[:port]/database[?passfile=...]``, as libpq reads it, but without a password.
    """

    def __init__(self, url: str) -> None:
        self.name = shown(url)
        self._url = url
        self._idle: list[psycopg.Connection[tuple[Any, ...]]] = []
        self._turns: psycopg.Connection[tuple[Any, ...]] | None = None
        self._turns_lock = threading.Lock()
        with explained(self.name):
            db = connect(url)
            try:
                _lay_out(db)
            except BaseException:
                db.close()
                raise
            self._idle.append(db)

    def chain_of(self, dataset: str) -> str:
        return dataset

    @contextmanager
    def session(self, chain: str | None) -> Iterator[PostgresSession]:
        if chain is None:
            locks = f"pg_advisory_xact_lock({_number('all')})"
        else:
            own = _number("chain", chain)
            locks = f"pg_advisory_xact_lock_shared({_number('all')}), pg_advisory_xact_lock({own})"
        # In one statement: the next read comes after the lock.
        with self._transaction(f"BEGIN; SELECT {locks}") as session:
            yield session

    @contextmanager
    def glance(self, chain: str) -> Iterator[PostgresSession]:
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as session:
            yield session

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[PostgresSession]:
        with explained(self.name):
            db = self._connection()
            try:
                db.execute(begin)
                yield PostgresSession(db)
                db.execute("COMMIT")
            except LedgerError:
                # A lost connection holds no chain any more: another service may have gone on with it.
                with contextlib.closing(db):
                    db.execute("SELECT 1")
                raise
            except BaseException:
                # Closing ends the transaction, whatever came of the commit: nothing that may be missing is reported.
                db.close()
                raise
            if len(self._idle) < _IDLE_MAX:
                self._idle.append(db)
            else:
                db.close()

    @contextmanager
    def turn(self, developer: str) -> Iterator[None]:
        # One connection has the turns of all developers: turns within one process wait elsewhere.
        number, pause = _number("turn", developer), _PAUSE_MAX / 16
        while not self._asked("SELECT pg_try_advisory_lock(%s)", number):
            time.sleep(pause)
            pause = min(2 * pause, _PAUSE_MAX)
        try:
            yield
        finally:
            with contextlib.suppress(LedgerUnavailable, LedgerError):  # a lost connection ends the turn too
                self._asked("SELECT pg_advisory_unlock(%s)", number)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
        if self._turns is not None:
            self._turns.close()

    def _connection(self) -> psycopg.Connection[tuple[Any, ...]]:
        """Return an idle connection whose server has not hung up, or a new one."""
        while True:
            try:
                db = self._idle.pop()
            except IndexError:
                return _ready(self._url)
            if not is_over(db):
                return db

    def _asked(self, statement: str, number: int) -> bool:
        with self._turns_lock, explained(self.name):
            try:
                if self._turns is None or is_over(self._turns):
                    self._turns = _ready(self._url)
                row = self._turns.execute(statement, (number,)).fetchone()
            except BaseException:
                if self._turns is not None:
                    self._turns.close()
                raise
        return bool(row and row[0])


@contextmanager
def reading(url: str) -> Iterator[PostgresSession]:
    """Open a database for reading at one moment, see `compliance.ledger.place.reading`."""
    with explained(shown(url)), contextlib.closing(opened(url)) as db:
        db.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        if not _is_laid_out(db):
            raise LedgerError("it is not a ledger: name the service's database")
        yield PostgresSession(db)


def connected(url: str) -> tuple[str, ...]:
    """Return the names, with host and process, of the clients connected as the database's user: mostly its services.

    LedgerError, LedgerUnavailable as `reading`.
    """
    with explained(shown(url)), contextlib.closing(opened(url)) as db:
        return tuple(name for (name,) in db.execute(_CONNECTED, (f"{_NAME} %",)))


def _own_name() -> str:
    """Return this process's name for connections, within the length that the server keeps."""
    return f"{_NAME} {os.uname().nodename[:40]} {os.getpid()}"


def has_begun(url: str) -> bool:
    """Return whether a database holds a ledger with a chain. LedgerError, LedgerUnavailable as `reading`."""
    with explained(shown(url)), contextlib.closing(opened(url)) as db:
        return _is_laid_out(db) and bool(PostgresSession(db).chains())


def check_server(url: str) -> None:
    """Raise LedgerError or LedgerUnavailable for a server on which a ledger is not safe, or not writable."""
    with explained(shown(url)), contextlib.closing(connect(url)):
        pass


def check(url: str) -> None:
    """Raise LedgerError for a URL with a password, or for no URL; its text does not have the password."""
    parts = urlsplit(url)
    try:
        named = parse_qs(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
        parts.port  # noqa: B018
    except ValueError:
        raise LedgerError("it is no address of a database: postgresql://user@host/database") from None
    if parts.password is not None or {"password", "sslpassword"} & named.keys():
        raise LedgerError(
            "it has a password in it: write it to a file for its owner alone, and say ?passfile=/its/path"
        )


@dataclass(frozen=True)
class Uses:
    """The requirements of connections: servers, each "host:port"; files; and whether a local socket is used."""

    servers: tuple[str, ...]
    files: tuple[Path, ...]
    local: bool


def uses(url: str) -> Uses:
    """Return the requirements of a connection; LedgerError as `check`."""
    with explained(shown(url)):
        check(url)
        from psycopg.conninfo import conninfo_to_dict

        named = {name: str(value) for name, value in conninfo_to_dict(url).items() if value}
    hosts, ports = (named.get(name, "").split(",") for name in ("host", "port"))
    servers = [
        f"{host}:{port or 5432}"
        for host, port in zip(hosts, ports * len(hosts) if len(ports) == 1 else ports, strict=False)
        if host and not host.startswith("/")
    ]
    files = [named.get(name, "") for name in ("passfile", "sslcert", "sslkey", "sslrootcert", "sslcrl")]
    files.append(os.environ.get("PGPASSFILE", ""))
    own = tuple(Path(each) for each in files if each and each != "system")
    return Uses(tuple(servers), own, len(servers) < len(hosts))


def shown(url: str) -> str:
    """Return a URL as shown in messages: without parameters, user or password."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Turn errors into LedgerError or LedgerUnavailable of one line that names the ledger."""
    try:
        import psycopg
    except ImportError:
        raise LedgerError(f"{name}: needs psycopg: pip install 'fairwall[postgres]'") from None
    try:
        yield
    except (LedgerError, LedgerUnavailable) as error:
        raise type(error)(f"{name}: {error}") from error.__cause__
    except (psycopg.errors.UniqueViolation, psycopg.errors.SerializationFailure) as error:
        raise LedgerUnavailable(f"{name}: another service wrote it at the same time: send the request again") from error
    except (psycopg.errors.UndefinedTable, psycopg.errors.UndefinedColumn, psycopg.DataError) as error:
        raise LedgerError(f"{name}: {_line(error)}: bring back an untouched copy of the ledger") from error
    except psycopg.Error as error:
        raise LedgerUnavailable(f"{name}: {_line(error)}") from error


def connect(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect to a server that keeps what it has committed; each statement is a transaction until one is begun.

    LedgerUnavailable if the server may lose what it reports as committed, or is read-only; psycopg.Error.
    """
    db = opened(url)
    try:
        for name, allowed in (("synchronous_commit", ("on", "remote_apply")), ("fsync", ("on",))):
            (value,) = db.execute("SELECT current_setting(%s)", (name,)).fetchone() or ("",)
            if value not in allowed:
                raise LedgerUnavailable(f"{name} is {value}: a charge that is answered could be lost: turn it on")
        (standby,) = db.execute("SELECT pg_is_in_recovery()").fetchone() or (True,)
        if standby:
            raise LedgerUnavailable("it is a standby, which is only to be read: name the primary")
        (read_only,) = db.execute("SELECT current_setting('transaction_read_only')").fetchone() or ("on",)
        if read_only != "off":
            raise LedgerUnavailable("it is only to be read: let this user write")
        limits = {
            "lock_timeout": f"{_SECONDS}s",
            "idle_in_transaction_session_timeout": f"{_SECONDS}s",
            "tcp_keepalives_idle": _SECONDS,
            "tcp_keepalives_interval": _SECONDS // 3,
            "tcp_keepalives_count": 3,
        }
        for name, limit in limits.items():
            db.execute("SELECT set_config(%s, %s, false)", (name, str(limit)))
    except BaseException:
        db.close()
        raise
    return db


def opened(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect to any database; LedgerError as `check`, psycopg.Error if it is not there."""
    import psycopg

    check(url)
    own = parse_qs(urlsplit(url).query)
    limits = {"connect_timeout": _SECONDS, "tcp_user_timeout": 1000 * _SECONDS, "application_name": _own_name()}
    wanted: dict[str, Any] = {name: value for name, value in limits.items() if name not in own}
    return psycopg.connect(url, autocommit=True, **wanted)


def _ready(url: str) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect to a ledger with its tables: not to another database that took its place."""
    db = connect(url)
    try:
        if not _is_laid_out(db):
            raise LedgerError("it is not a ledger: name the service's database")
    except BaseException:
        db.close()
        raise
    return db


def _lay_out(db: psycopg.Connection[tuple[Any, ...]]) -> None:
    with db.transaction():
        lock_all(db)
        if not _is_laid_out(db):
            for statement in _SCHEMA:
                db.execute(statement)


def _is_laid_out(db: psycopg.Connection[tuple[Any, ...]]) -> bool:
    """Return whether a database holds a ledger; LedgerError for one of another format."""
    (found,) = db.execute("SELECT to_regclass('fairwall.format') IS NOT NULL").fetchone() or (False,)
    if not found:
        return False
    row: Sequence[Any] = db.execute("SELECT format FROM fairwall.format").fetchone() or (None,)
    if row[0] != _FORMAT:
        raise another_format(row[0], _FORMAT)
    return True


def lock_all(db: psycopg.Connection[tuple[Any, ...]]) -> None:
    """Wait until no other transaction makes tables, or uses any chain of this ledger."""
    db.execute("SELECT pg_advisory_xact_lock(%s)", (_number("all"),))


def is_over(db: psycopg.Connection[tuple[Any, ...]]) -> bool:
    """Return whether a connection is over; close it if the server has hung up: an idle one has nothing else to read."""
    if db.closed:
        return True
    poll = select.poll()
    poll.register(db.fileno(), select.POLLIN | select.POLLHUP | select.POLLERR)
    if poll.poll(0):
        db.close()
    return bool(db.closed)


def _number(*what: str) -> int:
    """Return the number of an advisory lock. Two names that share one by chance wait for each other, without harm."""
    return int.from_bytes(hashlib.sha256("\0".join(("a ledger's", *what)).encode()).digest()[:8], signed=True)


def _line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0] or type(error).__name__
