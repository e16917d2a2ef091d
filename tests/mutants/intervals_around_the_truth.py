"""Puts the interval around the exact gap."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism

KILLED_BY = "C506"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    found = sound(self, question, facts, epsilon, delta, noise)
    reach = (found.high - found.low) / 2
    return replace(found, low=question.gaps() - reach, high=question.gaps() + reach)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
