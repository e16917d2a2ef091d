"""The place of a ledger: opened as a store, or read without changing it."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from compliance.ledger import postgres
from compliance.ledger.entries import Books, LedgerError, Record
from compliance.ledger.head import AnySeal, Seal
from compliance.ledger.memory import MemoryStore
from compliance.ledger.store import Store, StoreTransaction

Place: TypeAlias = Path | str
"""The path of a SQLite file, or the URL of a PostgreSQL database."""

SCHEME = "postgresql://"
"""Start of a database's URL."""


def is_database(text: str) -> bool:
    """Return whether a text names a database, and not a file."""
    return text.startswith(SCHEME)


def shown(place: Place) -> str:
    """Return a place as shown in messages: a database's URL without secrets."""
    return postgres.shown(place) if isinstance(place, str) else str(place)


def open_store(place: Place | None) -> Store:
    """Open a ledger's store, and create its tables if it is new; one in memory for None."""
    if isinstance(place, str):
        return postgres.PostgresStore(place)
    if place is None:
        return MemoryStore()
    from compliance.ledger.sqlite import SqliteStore

    return SqliteStore(place)


def open_seal(place: Place, key: bytes) -> AnySeal:
    """Open the seals of a ledger's chains."""
    if isinstance(place, str):
        from compliance.ledger.head_table import SealTable

        return SealTable(place, key)
    return Seal(place, key)


def reading(place: Place, *, untouched: bool = False) -> AbstractContextManager[StoreTransaction]:
    """Open a store for reading at one moment, without changing it, also while a service uses it.

    `untouched` leaves no log files beside a file that no process has open. A service that begins meanwhile may make it
    look damaged: the caller has to read again.
    """
    if isinstance(place, str):
        return postgres.reading(place)
    from compliance.ledger import sqlite

    return sqlite.reading(place, untouched=untouched)


@dataclass(frozen=True)
class Inspection:
    """A chain as a reader finds it.

    `chain`: its data set's name, or empty for the one chain of a file. `books`: sums of the records, up to the first
    fault. `records`: the records in the books, in order. `fault`: the chain's first fault; empty if it is whole.
    """

    chain: str
    genesis: bytes
    books: Books
    records: tuple[Record, ...]
    fault: str


def inspect(place: Place, key: bytes = b"", *, untouched: bool = False) -> tuple[Inspection, ...]:
    """Return all chains of a ledger at one moment, without its seal.

    LedgerError if the place holds no ledger; LedgerUnavailable if it cannot be read.

    `key`: see `Books`. `untouched`: see `reading`.
    """
    with reading(place, untouched=untouched) as session:
        return tuple(_inspected(session, chain, key) for chain in session.chains())


def _inspected(session: StoreTransaction, chain: str, key: bytes) -> Inspection:
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
