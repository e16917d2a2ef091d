"""Where a ledger is: what its place names is opened as a store, or read by whoever does not change it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from compliance.ledger import postgres
from compliance.ledger.entries import Books, LedgerError, Record
from compliance.ledger.head import AnySeal, Seal
from compliance.ledger.memory import MemoryStore
from compliance.ledger.store import Session, Store

Place: TypeAlias = Path | str
"""The path of a SQLite file, or the URL of a PostgreSQL database."""

SCHEME = "postgresql://"
"""How the URL of a database begins."""


def is_database(text: str) -> bool:
    """Say whether a text names a database, and not a file."""
    return text.startswith(SCHEME)


def shown(place: Place) -> str:
    """Return a place as messages show it: of a database without what is nobody's to read."""
    return postgres.shown(place) if isinstance(place, str) else str(place)


def open_store(place: Place | None) -> Store:
    """Open a ledger's store, and lay it out if it is new; one in memory for None."""
    if isinstance(place, str):
        return postgres.PostgresStore(place)
    if place is None:
        return MemoryStore()
    from compliance.ledger.sqlite import SqliteStore

    return SqliteStore(place)


def open_seal(place: Place, key: bytes) -> AnySeal:
    """Open where the heads of a ledger's chains are kept."""
    if isinstance(place, str):
        from compliance.ledger.head_table import SealTable

        return SealTable(place, key)
    return Seal(place, key)


def reading(place: Place, *, untouched: bool = False) -> AbstractContextManager[Session]:
    """Read a store as it is at one moment, without changing it, also while a service uses it.

    `untouched` leaves no files of a log beside a file that nobody has open. A service that begins meanwhile may make it
    look damaged: whoever asks for it looks again.
    """
    if isinstance(place, str):
        return postgres.reading(place)
    from compliance.ledger import sqlite

    return sqlite.reading(place, untouched=untouched)


@dataclass(frozen=True)
class Inspection:
    """A chain as a reader finds it.

    Parameters
    ----------
    chain : its name: that of its data set, or empty for the one chain of a file.
    genesis : what it starts from.
    books : what the records add up to, as far as the chain is whole.
    records : those that are in the books, in order.
    fault : what is wrong with the chain; empty if it is whole.
    """

    chain: str
    genesis: bytes
    books: Books
    records: tuple[Record, ...]
    fault: str


def inspect(place: Place, key: bytes = b"", *, untouched: bool = False) -> tuple[Inspection, ...]:
    """Read all chains of a ledger as they are at one moment, without its seal.

    LedgerError if the place holds no ledger; LedgerUnavailable if it cannot be read.

    Parameters
    ----------
    key : as in `Books`.
    untouched : as of `reading`.
    """
    with reading(place, untouched=untouched) as session:
        return tuple(_inspected(session, chain, key) for chain in session.chains())


def _inspected(session: Session, chain: str, key: bytes) -> Inspection:
    genesis = session.genesis(chain)
    assert genesis is not None, "it has begun"
    books, counted = Books(genesis, key), list[Record]()
    try:
        for record in session.records(chain, 0):
            books.add(record)
            counted.append(record)
    except LedgerError as error:
        return Inspection(chain, genesis, books, tuple(counted), str(error))
    return Inspection(chain, genesis, books, tuple(counted), "")
