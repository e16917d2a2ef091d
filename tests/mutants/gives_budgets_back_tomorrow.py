"""Counts what was charged within a day."""

import time
from collections import Counter

from compliance.__main__ import main
from compliance.ledger.entries import Books, Entry

KILLED_BY = "C750"

sound = Books.add


def add(self, record):
    sound(self, record)
    if isinstance(record, Entry):
        self.__dict__.setdefault("charges", []).append(record)


def losses(self, dataset, developer=""):
    since = time.time() - 86400
    mine = (each.request for each in self.__dict__.get("charges", ()) if each.time > since)
    return Counter(each.loss for each in mine if each.dataset == dataset and developer in ("", each.developer))


Books.add, Books.losses = add, losses

if __name__ == "__main__":
    main()
