"""Draws half of the noise on counts by group, and tells the whole of it."""

from compliance.__main__ import main
from compliance.answers import groups

KILLED_BY = "C951"

whole = groups.balanced_noise
groups.balanced_noise = lambda noise, rate, rows, groups: whole(noise, 2 * rate, rows, groups)

if __name__ == "__main__":
    main()
