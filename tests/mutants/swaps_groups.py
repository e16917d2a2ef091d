"""Subtracts the advantaged from the disadvantaged."""

from compliance.__main__ import main
from compliance.records import metrics

KILLED_BY = "C502"

metrics._difference_of_means = lambda part: part.sum0 / part.n0 - part.sum1 / part.n1

if __name__ == "__main__":
    main()
