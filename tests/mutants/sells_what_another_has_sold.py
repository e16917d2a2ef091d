"""Looks at what it has sold itself, and not at what another service of its ledger has."""

from collections import Counter

from compliance.__main__ import main
from compliance.ledger import Ledger
from compliance.ledger.entries import Books

KILLED_BY = "C841"

charge, sold = Ledger._charge, Counter()


def charged(self, held, request, reply):
    sold[request.developer] += request.loss.epsilon
    return charge(self, held, request, reply)


def affords(self, request):
    return sold[request.developer] + request.loss.epsilon <= self.budget(request.dataset, request.developer).epsilon


Ledger._charge, Books.affords = charged, affords

if __name__ == "__main__":
    main()
