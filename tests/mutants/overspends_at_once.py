"""Looks at the budget first and charges later: requests at the same time all fit."""

import contextlib
import threading
import time

from compliance.__main__ import main
from compliance.ledger import Ledger
from compliance.ledger.entries import Books
from fairwall.rpc import work

KILLED_BY = "C403"

sound, affords = Ledger.settle, Books.affords
looked = threading.local()


def settle(self, request, answer, *how, **room):
    with self._held(request.dataset) as held:
        looked.fits = affords(held.books, request)
    time.sleep(0.2)
    return sound(self, request, answer, *how, **room)


Books.affords = lambda *_: looked.fits
Ledger.settle = settle
work.working = lambda _: contextlib.nullcontext()

if __name__ == "__main__":
    main()
