"""Gives sums of scores the noise of all of epsilon, beside counts that use it up."""

from compliance.__main__ import main
from compliance.answers import groups

KILLED_BY = "C951"

sums = groups._sums
groups._sums = lambda predictions, by, rate, noise: sums(predictions, by, 2 * rate, noise)

if __name__ == "__main__":
    main()
