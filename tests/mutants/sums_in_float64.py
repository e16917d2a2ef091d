"""Adds charges up in float64, in the order of its table."""

from decimal import Decimal

from compliance.__main__ import main
from compliance.ledger import accountant

KILLED_BY = "C420"

accountant._epsilons = lambda losses: Decimal(repr(sum(loss.epsilon * count for loss, count in losses.items())))

if __name__ == "__main__":
    main()
