"""The interface of a ledger's store: a SQLite file, a PostgreSQL database, or memory.

A store holds *chains*: sequences of records, where each digest includes the previous one. A file has one chain for all
data sets, since only one process can write it at a time anyway. A database has one for each data set, so that data sets
do not wait for one another. Only the holder of a chain reads its end and appends to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from compliance.ledger.entries import LedgerEntry, Record
from compliance.ledger.head import Head
from fairwall.errors import UserError


class LedgerUnavailable(UserError):
    """The ledger cannot be written at present. The text says in one line why; no answer has left."""


class StoreTransaction(Protocol):
    """A transaction: records read from a chain that is held are all that were ever committed to it."""

    def chains(self) -> tuple[str, ...]:
        """Return the chains that have begun."""

    def genesis(self, chain: str) -> bytes | None:
        """Return a chain's start; None if it has not begun."""

    def begin(self, chain: str, genesis: bytes) -> None:
        """Begin a chain."""

    def head(self, chain: str) -> Head:
        """Return the end of a chain that has begun."""

    def records(self, chain: str, after: int) -> Iterator[Record]:
        """Yield a chain's records after a sequence number, in order; LedgerError for a row that is no record."""

    def append(self, chain: str, record: Record) -> None:
        """Write one more record, which is durable once the transaction is."""

    def find(self, developer: str, request_id: str) -> tuple[LedgerEntry, bytes] | None:
        """Return a developer's charge under a request id, on any chain, and the digest of the record before it.

        None if there was no charge. LedgerError if the record before it is gone.
        """

    def entries(self, dataset: str) -> tuple[LedgerEntry, ...]:
        """Return the charges to a data set, in order."""

    def answered(self, developer: str, after: float, before: float, most: int) -> int:
        """Return the number of a developer's new answers between two times, on all chains, up to `most`."""

    def probe(self) -> None:
        """Write a value without meaning: the end of the transaction shows whether the store can be written."""


class Store(Protocol):
    """A ledger's store. All calls raise LedgerUnavailable, or LedgerError for what cannot be a ledger."""

    name: str
    """The store's name in messages."""

    def chain_of(self, dataset: str) -> str:
        """Return the chain of a data set's records."""

    def session(self, chain: str | None) -> AbstractContextManager[StoreTransaction]:
        """Hold a chain, or all, for a transaction: committed at the end, rolled back if anything raises."""

    def glance(self, chain: str) -> AbstractContextManager[StoreTransaction]:
        """Open a chain for reading at one moment, whoever holds it."""

    def turn(self, developer: str) -> AbstractContextManager[None]:
        """Hold a developer's turn among all processes that use this store."""

    def close(self) -> None:
        """Close the store."""
