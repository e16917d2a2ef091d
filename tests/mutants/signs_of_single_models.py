"""Gives the answer about a single model the sign of its exact gap."""

from dataclasses import replace

import numpy as np

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism

KILLED_BY = "C520"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    found = sound(self, question, facts, epsilon, delta, noise)
    if question.queries != 1:
        return found
    gap = question.gaps()
    flip = np.sign(found.values) != np.sign(gap)
    moved = np.where(flip & (gap != 0), -2 * found.values, 0.0)
    return replace(found, values=found.values + moved, low=found.low + moved, high=found.high + moved)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
