"""Gives models of a batch that predict the same the same noise."""

from dataclasses import replace

import numpy as np

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism

KILLED_BY = "C506"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    found = sound(self, question, facts, epsilon, delta, noise)
    _, first, which = np.unique(question.predictions, axis=0, return_index=True, return_inverse=True)
    values, low, high = (part[first][which.ravel()] for part in (found.values, found.low, found.high))
    return replace(found, values=values, low=low, high=high)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
