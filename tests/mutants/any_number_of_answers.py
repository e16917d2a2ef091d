"""Sells as many answers in a day as somebody can pay for."""

from compliance import ledger
from compliance.__main__ import main

KILLED_BY = "C761"

ledger._is_day_full = lambda *_: False

if __name__ == "__main__":
    main()
