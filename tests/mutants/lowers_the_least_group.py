"""Serves smaller groups than answers have counted on."""

from compliance import ledger
from compliance.__main__ import main

KILLED_BY = "C762"

ledger._check_groups = lambda *_: None

if __name__ == "__main__":
    main()
