"""Where a ledger's records are kept, as the ledger sees it: a SQLite file, or a PostgreSQL database.

A store holds *chains*: records that follow on one another, each digest made of the one before. A file has one chain for
all data sets, since only one process can write it at a time anyway. A database has one for each data set, so that data
sets do not wait for one another. Whoever holds a chain is the only one to read where it ends and to append to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Protocol

from compliance.ledger.entries import Entry, Record
from compliance.ledger.head import Head
from fairwall.errors import UserError


class LedgerUnavailable(UserError):
    """The ledger cannot be written at present. The text says in one line why; no answer has left."""


class Session(Protocol):
    """A transaction: what is read of a chain that is held is all that was ever committed to it."""

    def chains(self) -> tuple[str, ...]:
        """List the chains that have begun."""

    def genesis(self, chain: str) -> bytes | None:
        """Return what a chain starts from; None if it has not begun."""

    def begin(self, chain: str, genesis: bytes) -> None:
        """Begin a chain."""

    def head(self, chain: str) -> Head:
        """Return where a chain ends that has begun."""

    def records(self, chain: str, after: int) -> Iterator[Record]:
        """Read the records of a chain behind a sequence number, in order. LedgerError for what is no record."""

    def append(self, chain: str, record: Record) -> None:
        """Write one more record, which is durable once the transaction is."""

    def find(self, developer: str, request_id: str) -> tuple[Entry, bytes] | None:
        """Read what a developer was charged under a request id, on any chain, and the digest of the record before it.

        None if nothing was. LedgerError if the record before it is gone.
        """

    def entries(self, dataset: str) -> tuple[Entry, ...]:
        """Read what was charged to a data set, in order."""

    def answered(self, developer: str, after: float, before: float, most: int) -> int:
        """Count a developer's new answers between two times, on all chains, up to so many."""

    def probe(self) -> None:
        """Write what stands for nothing: whether the store can be written shows once the transaction is over."""


class Store(Protocol):
    """A ledger's store. All calls raise LedgerUnavailable, or LedgerError for what cannot be a ledger."""

    name: str
    """What messages call it."""

    def chain_of(self, dataset: str) -> str:
        """Say which chain the records of a data set are on."""

    def session(self, chain: str | None) -> AbstractContextManager[Session]:
        """Hold a chain, or all, for a transaction: committed at the end, rolled back if anything raises."""

    def glance(self, chain: str) -> AbstractContextManager[Session]:
        """Read a chain as it is at one moment, whoever holds it."""

    def turn(self, developer: str) -> AbstractContextManager[None]:
        """Hold a developer's turn among all processes that use this store."""

    def close(self) -> None:
        """Let go of it."""
