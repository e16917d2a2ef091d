"""Makes do with a ledger that lacks its last record."""

from compliance import ledger
from compliance.__main__ import main

KILLED_BY = "C734"

sound = ledger._check_seal


def check(seal, books):
    sealed = seal.read()
    if sealed and sealed.sequence == books.head.sequence + 1:
        seal.begin(books.head)
    sound(seal, books)


ledger._check_seal = check

if __name__ == "__main__":
    main()
