"""Divides by one person too few."""

from compliance.__main__ import main
from compliance.records import metrics

KILLED_BY = "C501"

metrics._difference_of_means = lambda part: part.sum1 / (part.n1 - 1) - part.sum0 / part.n0

if __name__ == "__main__":
    main()
