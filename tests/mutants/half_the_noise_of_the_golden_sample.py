"""Draws half of the noise on what is known of a golden sample, and tells the whole of it."""

from compliance.__main__ import main
from compliance.answers import groups

KILLED_BY = "C956"

VALUES = 3

whole = groups.balanced_noise


def half(noise, rate, rows, groups):
    return whole(noise, 2 * rate if groups % VALUES**2 == 0 else rate, rows, groups)


groups.balanced_noise = half

if __name__ == "__main__":
    main()
