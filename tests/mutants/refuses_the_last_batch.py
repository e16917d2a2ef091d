"""Refuses a batch that costs all that is left."""

from collections import Counter

from compliance.__main__ import main
from compliance.ledger.entries import Books

KILLED_BY = "C402"

sound = Books.affords


def affords(self, request):
    left = self._remaining(request.dataset, request.developer, Counter())
    return sound(self, request) and request.loss.epsilon < left


Books.affords = affords

if __name__ == "__main__":
    main()
