"""Logs how many people each group has."""

from compliance.__main__ import main
from compliance.deployment import accounts, serve

KILLED_BY = "C610"

sound = accounts._case


def case_of(data, ledger):
    n1 = int(data.first.protected.sum())
    serve.LOG.info("%d and %d people", n1, data.first.people - n1)
    return sound(data, ledger)


accounts._case = case_of

if __name__ == "__main__":
    main()
