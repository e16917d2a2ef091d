"""Answers from memory where the ledger cannot be written."""

import time

from compliance.__main__ import main
from compliance.ledger import Ledger
from compliance.ledger.entries import Entry
from compliance.ledger.store import LedgerUnavailable

KILLED_BY = "C730"

sound = Ledger.settle
kept = {}


def settle(self, request, answer, *how, **room):
    try:
        return sound(self, request, answer, *how, **room)
    except LedgerUnavailable:
        books = self._chains[""].books
        fresh = Entry(books.head.sequence + 1, request, answer(()), books.remaining_after(request), time.time(), b"")
        return kept.setdefault(request.digest, fresh)


Ledger.settle = settle

if __name__ == "__main__":
    main()
