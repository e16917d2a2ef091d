"""Serves smaller groups than answers have counted on."""

from compliance.__main__ import main
from compliance.ledger import Ledger

KILLED_BY = "C762"

Ledger._check_groups = lambda *_: None

if __name__ == "__main__":
    main()
