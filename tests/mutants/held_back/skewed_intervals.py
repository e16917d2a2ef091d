"""Moves intervals of absolute gaps a little towards the exact ones."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism

KILLED_BY = "C520"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    found = sound(self, question, facts, epsilon, delta, noise)
    moved = (question.gaps() - found.values) * (1e-6 if question.metric.startswith("abs_") else 0)
    return replace(found, low=found.low + moved, high=found.high + moved)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
