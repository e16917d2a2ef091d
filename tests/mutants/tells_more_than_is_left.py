"""Rounds what is left to the nearest float64, which may be more."""

from compliance.__main__ import main
from compliance.ledger import accountant

KILLED_BY = "C421"

accountant.at_most = float

if __name__ == "__main__":
    main()
