"""Answers about models that are handed over by the mechanism that the policy names, with noise on gaps."""

from compliance.__main__ import main
from compliance.answers import audits

KILLED_BY = "C988"

audits.by_sums = lambda mechanism, *_: mechanism

if __name__ == "__main__":
    main()
