"""Answers first and writes the charge down a little later."""

import threading
import time

from compliance.__main__ import main
from compliance.ledger import Ledger
from compliance.ledger.entries import Entry

KILLED_BY = "C404"

sound = Ledger.settle


def settle(self, request, answer, *how, **room):
    with self._held(request.dataset) as held:
        entry = self._find(held, request)
        books = held.books
        if entry is None and books.affords(request):
            remaining = books.remaining_after(request)
            entry = Entry(books.head.sequence + 1, request, answer(()), remaining, time.time(), b"")
            threading.Timer(5, sound, (self, request, lambda _: entry.reply)).start()
    return entry or sound(self, request, answer, *how, **room)


Ledger.settle = settle

if __name__ == "__main__":
    main()
