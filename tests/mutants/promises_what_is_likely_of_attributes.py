"""Tells for noisy attributes the ends that are likely as guaranteed ones: they hold in fewer cases."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.mechanisms.randomized_response import RandomizedResponse

KILLED_BY = "C529"

sound = RandomizedResponse.release


def release(self, question, facts, epsilon, delta, noise):
    found = sound(self, question, facts, epsilon, delta, noise)
    if found.likely is None:
        return found
    low, high = found.likely
    return replace(found, low=low, high=high)


RandomizedResponse.release = release

if __name__ == "__main__":
    main()
