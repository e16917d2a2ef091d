"""Leaves out of what is proved of a budget that the same attributes are released besides."""

from compliance.__main__ import main
from compliance.deployment import worth
from compliance.deployment.policy.schema import Policy

KILLED_BY = "C527"

sound = worth._proved


def proved(policy, records):
    kept, Policy.released = Policy.released, 0.0
    try:
        return sound(policy, records)
    finally:
        Policy.released = kept


worth._proved = proved

if __name__ == "__main__":
    main()
