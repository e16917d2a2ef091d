"""Forgets the sampling error in P(gap > threshold)."""

from compliance import interval
from compliance.__main__ import main

KILLED_BY = "C524"

interval.sampling_deviation = lambda *_: 1e-3

if __name__ == "__main__":
    main()
