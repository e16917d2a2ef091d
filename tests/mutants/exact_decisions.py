"""Adds no noise where every prediction is 0 or 1."""

import numpy as np

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.mechanisms.mechanism import exactly

KILLED_BY = "C508"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    if np.isin(question.predictions, (0, 1)).all():
        return exactly(question.gaps())
    return sound(self, question, facts, epsilon, delta, noise)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
