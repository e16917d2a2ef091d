"""Leaves the smaller term of advanced composition away."""

from compliance.__main__ import main
from compliance.ledger import accountant
from compliance.ledger.accountant import Rule
from fairwall.laws.decimals import written

KILLED_BY = "C431"

sound = accountant._RULES[Rule.ADVANCED]


def advanced(losses, delta, limit):
    squares = sum(written(loss.epsilon) ** 2 * count for loss, count in losses.items())
    return sound(losses, delta, limit) - squares / 2


accountant._RULES = {**accountant._RULES, Rule.ADVANCED: advanced}

if __name__ == "__main__":
    main()
