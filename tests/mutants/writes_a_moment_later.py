"""Answers, and writes the charge down twenty milliseconds later."""

import threading
import time

from compliance.__main__ import main
from compliance.ledger import Ledger
from compliance.ledger.entries import Entry

KILLED_BY = "C737"

sound = Ledger.settle
promised = {}


def settle(self, request, answer, *how, **room):
    with self._held(request.dataset) as held:
        entry, books = self._find(held, request), held.books
        if entry is None and books.affords(request):
            remaining = books.remaining_after(request)
            entry = Entry(books.head.sequence + 1, request, answer(()), remaining, time.time(), b"")
            threading.Timer(0.02, sound, (self, request, lambda _: entry.reply)).start()
    return entry or sound(self, request, answer, *how, **room)


Ledger.settle = settle

if __name__ == "__main__":
    main()
