"""Begins anew where ledger and head are gone, although it has been here before."""

from compliance import deployment
from compliance.__main__ import main

KILLED_BY = "C736"

deployment._check_begun = lambda *_, **__: None

if __name__ == "__main__":
    main()
