"""Sells as many answers in a day as somebody can pay for."""

from compliance.__main__ import main
from compliance.ledger.entries import Books

KILLED_BY = "C761"

Books.is_day_full = lambda *_: False

if __name__ == "__main__":
    main()
