"""Adds the exact gap a second time, so small that it stands below the grid of the noise."""

from dataclasses import replace

import numpy as np

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.noise.sampling import step_for

KILLED_BY = "C520"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    found = sound(self, question, facts, epsilon, delta, noise)
    step = step_for(question.queries / 2 / epsilon)
    return replace(found, values=found.values + np.rint(question.gaps() * 64) * step / 256)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
