"""Believes whatever ledger it finds."""

from compliance.__main__ import main
from compliance.ledger import Ledger

KILLED_BY = "C733"

Ledger._check_seal = lambda _: None

if __name__ == "__main__":
    main()
