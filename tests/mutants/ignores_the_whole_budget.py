"""Looks at each developer's share alone: together they spend more than there is."""

from compliance.__main__ import main
from compliance.ledger.entries import Books

KILLED_BY = "C406"


def affords(self, request):
    share = self.budget(request.dataset, request.developer)
    return share is not None and share.affords(self.losses(request.dataset, request.developer), request.loss)


Books.affords = affords

if __name__ == "__main__":
    main()
