"""Leaves out of what attacks make of a budget that the same attributes are released besides."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.deployment import worth

KILLED_BY = "C527"

sound = worth._offers


def offers(policy, records):
    return [replace(each, released=0.0) for each in sound(policy, records)]


worth._offers = offers

if __name__ == "__main__":
    main()
