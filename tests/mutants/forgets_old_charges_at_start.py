"""Leaves charges of the week before out when it starts."""

import time
from collections import Counter

from compliance.__main__ import main
from compliance.ledger.entries import Books, Entry

KILLED_BY = "C751"

sound = Books.add
started = time.time()


def add(self, record):
    sound(self, record)
    if isinstance(record, Entry) and record.time < started - 7 * 86400:
        for developer in ("", record.request.developer):
            self._losses[record.request.dataset, developer] -= Counter([record.request.loss])


Books.add = add

if __name__ == "__main__":
    main()
