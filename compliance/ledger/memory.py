"""A ledger's records in the memory of one process: a game's, which ends with its deal. It has one chain."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from compliance.ledger.entries import LedgerEntry, Record
from compliance.ledger.head import Head

_CHAIN = ""


class MemoryStore:
    """Records in memory, see `compliance.ledger.store.Store`, and while they are held a `Session`."""

    name = "the ledger in memory"

    def __init__(self) -> None:
        self._records = list[Record]()
        self._asked = dict[tuple[str, str], LedgerEntry]()
        self._genesis = secrets.token_bytes(32)
        self._lock = threading.Lock()

    def chain_of(self, dataset: str) -> str:
        return _CHAIN

    @contextmanager
    def session(self, chain: str | None) -> Iterator[MemoryStore]:
        with self._lock:
            committed = len(self._records)
            try:
                yield self
            except BaseException:
                del self._records[committed:]
                self._asked = {_name(entry): entry for entry in self._entries()}
                raise

    def glance(self, chain: str) -> AbstractContextManager[MemoryStore]:
        return self.session(chain)

    def turn(self, developer: str) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        pass

    # Methods of the session, while the records are held.

    def chains(self) -> tuple[str, ...]:
        return (_CHAIN,)

    def genesis(self, chain: str) -> bytes:
        return self._genesis

    def begin(self, chain: str, genesis: bytes) -> None:
        self._genesis = genesis

    def head(self, chain: str) -> Head:
        return Head(len(self._records), self._before(len(self._records) + 1))

    def records(self, chain: str, after: int) -> Iterator[Record]:
        return iter(self._records[after:])

    def append(self, chain: str, record: Record) -> None:
        self._records.append(record)
        if isinstance(record, LedgerEntry):
            self._asked[_name(record)] = record

    def find(self, developer: str, request_id: str) -> tuple[LedgerEntry, bytes] | None:
        entry = self._asked.get((developer, request_id))
        return None if entry is None else (entry, self._before(entry.sequence))

    def entries(self, dataset: str) -> tuple[LedgerEntry, ...]:
        return tuple(entry for entry in self._entries() if entry.request.dataset == dataset)

    def answered(self, developer: str, after: float, before: float, most: int) -> int:
        own = (entry.time for entry in self._entries() if entry.request.developer == developer)
        return min(most, sum(after < time < before for time in own))

    def probe(self) -> None:
        pass

    def _entries(self) -> Iterator[LedgerEntry]:
        return (record for record in self._records if isinstance(record, LedgerEntry))

    def _before(self, sequence: int) -> bytes:
        """Return the digest of the record before this one, or the chain's start."""
        return self._records[sequence - 2].chain if sequence > 1 else self._genesis


def _name(entry: LedgerEntry) -> tuple[str, str]:
    return entry.request.developer, entry.request.request_id
