"""Keeps its ledger in memory: a restart gives everything back."""

from compliance.__main__ import main
from compliance.deployment import serve
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, Rule

KILLED_BY = "C404"


def ledger_of(policy, data):
    ledger = Ledger()
    for each in policy.datasets.values():
        budget = Budget(each.budget.epsilon, each.budget.delta, Rule(each.budget.rule))
        ledger.set_budget(each.data_name, Neighbours.A_FLIP, budget)
        for name, share in each.developers.items():
            ledger.allocate(each.data_name, name, share.epsilon, share.delta)
    return ledger


serve.open_ledger = ledger_of

if __name__ == "__main__":
    main()
