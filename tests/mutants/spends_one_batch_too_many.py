"""Answers as long as anything is left, whatever a batch costs."""

from collections import Counter

from compliance.__main__ import main
from compliance.ledger.entries import Books

KILLED_BY = "C402"

Books.affords = lambda self, request: self._remaining(request.dataset, request.developer, Counter()) > 0

if __name__ == "__main__":
    main()
