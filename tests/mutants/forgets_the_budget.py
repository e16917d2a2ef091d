"""Keeps its ledger in memory: a restart gives everything back."""

from compliance.__main__ import main
from compliance.deployment import serve
from compliance.ledger import Ledger
from compliance.ledger.accountant import Budget, Neighbours, Rule

KILLED_BY = "C404"


def ledger_of(policies, data):
    ledger = Ledger()
    for policy in policies.datasets.values():
        budget = Budget(policy.budget.epsilon, policy.budget.delta, Rule(policy.budget.rule))
        ledger.set_budget(policy.data_name, Neighbours.A_FLIP, budget)
        for name, share in policy.developers.items():
            ledger.allocate(policy.data_name, name, share.epsilon, share.delta)
    return ledger


serve.open_ledger = ledger_of

if __name__ == "__main__":
    main()
