"""Rounds what is left to the nearest float64, which may be more."""

from compliance import accountant
from compliance.__main__ import main

KILLED_BY = "C421"

accountant.at_most = float

if __name__ == "__main__":
    main()
