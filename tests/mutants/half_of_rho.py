"""Counts half of what a batch costs, under zCDP."""

from compliance.__main__ import main
from compliance.ledger import accountant

KILLED_BY = "C432"

sound = accountant._rho
accountant._rho = lambda loss: sound(loss) / 2

if __name__ == "__main__":
    main()
