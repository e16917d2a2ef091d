"""Makes do with a ledger that lacks its last record."""

from compliance.__main__ import main
from compliance.ledger import Ledger

KILLED_BY = "C734"

sound = Ledger._check_seal


def check(self):
    sealed = self._seal and self._seal.read()
    if sealed and sealed.sequence == self._books.head.sequence + 1:
        self._seal.begin(self._books.head)
    sound(self)


Ledger._check_seal = check

if __name__ == "__main__":
    main()
