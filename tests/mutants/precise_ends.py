"""Tells the ends of intervals more precisely than its answers."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.answers import audits as case

KILLED_BY = "C530"

sound = case._rounded


def rounded(release, precision):
    return replace(sound(release, precision), low=release.low, high=release.high)


case._rounded = rounded

if __name__ == "__main__":
    main()
