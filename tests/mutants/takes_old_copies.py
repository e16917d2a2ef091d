"""Believes whatever ledger it finds."""

from compliance import ledger
from compliance.__main__ import main

KILLED_BY = "C733"

ledger._check_seal = lambda *_: None

if __name__ == "__main__":
    main()
