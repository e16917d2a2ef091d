"""Logs how many people each group has."""

import compliance.__main__ as service_main
from compliance.__main__ import main

KILLED_BY = "C610"

sound = service_main._case


def case_of(policy, records, ledger):
    n1 = int(records.protected.sum())
    service_main.LOG.info("%d and %d people", n1, records.people - n1)
    return sound(policy, records, ledger)


service_main._case = case_of

if __name__ == "__main__":
    main()
