"""Logs how many people each group has."""

from compliance.__main__ import main
from compliance.deployment import accounts, serve

KILLED_BY = "C610"

sound = accounts.case_of


def case_of(data, *rest, **named):
    n1 = int(data.first.protected.sum())
    serve.LOG.info("%d and %d people", n1, data.first.people - n1)
    return sound(data, *rest, **named)


accounts.case_of = case_of

if __name__ == "__main__":
    main()
