"""Sealed heads in a PostgreSQL database: another one than the ledger's, on a server that is not restored with it."""

from __future__ import annotations

import hmac
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compliance.ledger import postgres
from compliance.ledger.entries import LedgerError
from compliance.ledger.head import Head, SealError, derived, seal_of, too_late
from compliance.ledger.store import LedgerUnavailable

if TYPE_CHECKING:
    import psycopg

_SCHEMA = (
    "CREATE SCHEMA IF NOT EXISTS fairwall_heads",
    """CREATE TABLE IF NOT EXISTS fairwall_heads.heads (ledger bytea, line text, sequence bigint NOT NULL,
       chain bytea NOT NULL, seal bytea NOT NULL, PRIMARY KEY (ledger, line))""",
)
"""One table for all ledgers; `ledger` is a digest of the ledger's key."""

_WRITE = """INSERT INTO fairwall_heads.heads VALUES (%s, %s, %s, %s, %s)
    ON CONFLICT (ledger, line) DO UPDATE
    SET sequence = excluded.sequence, chain = excluded.chain, seal = excluded.seal"""

_IN_ORDER = """ WHERE heads.sequence < excluded.sequence
    OR (heads.sequence = excluded.sequence AND heads.chain = excluded.chain)"""


class _Connection:
    """The one connection of all seals of a ledger; made when needed, and again after a loss."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._db: psycopg.Connection[tuple[Any, ...]] | None = None
        self._is_laid_out = False

    @contextmanager
    def use(self, *, writes: bool) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        try:
            with self._lock, postgres.explained(postgres.shown(self._url)):
                if self._db is None or postgres.is_over(self._db):
                    self._db, self._is_laid_out = postgres.connect(self._url), False
                if writes and not self._is_laid_out:
                    with self._db.transaction():
                        postgres.lock_all(self._db)
                        for statement in _SCHEMA:
                            self._db.execute(statement)
                    self._is_laid_out = True
                yield self._db
        except (LedgerError, LedgerUnavailable) as error:
            raise OSError(str(error)) from error


@dataclass(frozen=True)
class SealTable:
    """A database table of heads, see `compliance.ledger.head.AnySeal`.

    `url`: see `compliance.ledger.postgres.PostgresStore`. `key`: see `compliance.ledger.head.load_key`.
    """

    url: str
    key: bytes = field(repr=False)
    chain: str = ""
    _connection: _Connection | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self._connection is None:
            object.__setattr__(self, "_connection", _Connection(self.url))

    @property
    def path(self) -> str:
        """The name in messages."""
        return postgres.shown(self.url)

    def derived(self, purpose: str) -> bytes:
        """Return a derived key."""
        return derived(self.key, purpose)

    def of(self, chain: str) -> SealTable:
        """Return the seal of one chain."""
        return replace(self, chain=chain)

    def is_inside(self, folder: Path) -> bool:  # noqa: ARG002
        """Return whether copies of a folder would hold this head too."""
        return False

    def check_apart(self, ledger: str) -> None:
        """Raise LedgerError for the ledger's own server, or its copy: head and ledger would be restored together."""
        found = []
        for url in (ledger, self.url):
            with postgres.explained(postgres.shown(url)), closing(postgres.connect(url)) as db:
                found.append(db.execute("SELECT system_identifier FROM pg_control_system()").fetchone())
        if found[0] == found[1]:
            raise LedgerError(
                f"{self.path}: is on the ledger's server, and would be restored with it: keep the head elsewhere"
            )

    def exists(self) -> bool:
        """Return whether a head was sealed here."""
        with self._open(writes=False) as db:
            asked = "SELECT 1 FROM fairwall_heads.heads WHERE ledger = %s LIMIT 1"
            return _has_heads(db) and db.execute(asked, (self._ledger,)).fetchone() is not None

    def read(self) -> Head | None:
        """Return the head as it was sealed last."""
        select = "SELECT sequence, chain, seal FROM fairwall_heads.heads WHERE ledger = %s AND line = %s"
        with self._open(writes=False) as db:
            row = db.execute(select, (self._ledger, self.chain)).fetchone() if _has_heads(db) else None
        if row is None:
            return None
        head = Head(row[0], row[1])
        if not hmac.compare_digest(row[2], seal_of(self.key, head)):
            raise SealError(f"{self.path}: not sealed with this key: put back the head and the key it was made with")
        return head

    def write(self, head: Head) -> None:
        """Seal the next head, or this one again; OSError if it is too late: another service went on with its chain."""
        with self._open() as db:
            written = db.execute(_WRITE + _IN_ORDER, self._row(head))
        if not written.rowcount:
            raise too_late(self.path)

    def begin(self, head: Head) -> None:
        """Seal a head that need not follow the previous one."""
        with self._open() as db:
            db.execute(_WRITE, self._row(head))

    @property
    def _ledger(self) -> bytes:
        return derived(self.key, "the name of a ledger")[:16]

    def _row(self, head: Head) -> tuple[Any, ...]:
        return self._ledger, self.chain, head.sequence, head.chain, seal_of(self.key, head)

    @contextmanager
    def _open(self, *, writes: bool = True) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
        assert self._connection is not None, "made with it"
        with self._connection.use(writes=writes) as db:
            yield db


def _has_heads(db: psycopg.Connection[tuple[Any, ...]]) -> bool:
    (found,) = db.execute("SELECT to_regclass('fairwall_heads.heads') IS NOT NULL").fetchone() or (False,)
    return bool(found)
