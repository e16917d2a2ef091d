"""Charges gaps by each protected column to an account of its own."""

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C962"

sound = Case.answer


def settle(case, developer, *asked, **named):
    if case.bought_under:
        share = case.ledger.standing(case.dataset, developer).budget.epsilon
        developer = f"{developer}-{case.protected}"
        case.ledger.allocate(case.dataset, developer, share)
    return sound(case, developer, *asked, **named)


Case.answer = settle

if __name__ == "__main__":
    main()
