"""Charges what it could not write once it can, and again when it is asked again."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.ledger import Ledger
from compliance.ledger.store import LedgerUnavailable

KILLED_BY = "C730"

sound = Ledger.settle
queue = []


def settle(self, request, answer, *how, **room):
    try:
        entry = sound(self, request, answer, *how, **room)
    except LedgerUnavailable:
        queue.append((replace(request, request_id=f"{request.request_id} later"), answer, how, room))
        raise
    while queue:
        later, its, how, room = queue.pop()
        sound(self, later, its, *how, **room)
    return entry


Ledger.settle = settle

if __name__ == "__main__":
    main()
