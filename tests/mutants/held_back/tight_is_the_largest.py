"""Charges a series of Gaussian noises what the largest of them costs."""

from compliance.__main__ import main
from compliance.ledger import accountant
from compliance.ledger.accountant import Rule

KILLED_BY = "C434"

sound = accountant._RULES[Rule.TIGHT]


def tight(losses, delta, limit):
    return sound({loss: (count + 1) // 2 for loss, count in losses.items()}, delta, limit)


accountant._RULES = {**accountant._RULES, Rule.TIGHT: tight}

if __name__ == "__main__":
    main()
