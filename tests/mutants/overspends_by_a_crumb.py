"""Takes a budget for enough that is less than a billionth too small."""

from compliance.__main__ import main
from compliance.ledger.accountant import Budget

KILLED_BY = "C409"


def affords(self, losses, loss):
    return self.spent({**losses, loss: losses.get(loss, 0) + 1}) <= self.epsilon * (1 + 1e-9)


Budget.affords = affords

if __name__ == "__main__":
    main()
