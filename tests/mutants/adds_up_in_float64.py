"""Adds charges up in float64: twenty times 0.1 are more than 2."""

from compliance.__main__ import main
from compliance.ledger.accountant import Budget

KILLED_BY = "C409"


def affords(self, losses, loss):
    return (
        sum([charged.epsilon for charged, count in losses.items() for _ in range(count)], loss.epsilon) <= self.epsilon
    )


Budget.affords = affords

if __name__ == "__main__":
    main()
