"""Lets the last bit of each answer tell whom the model favours."""

from dataclasses import replace

import numpy as np

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.noise.sampling import step_for

KILLED_BY = "C520"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    found = sound(self, question, facts, epsilon, delta, noise)
    step = step_for(question.queries * question.sensitivities().overall / epsilon)
    steps = np.rint(found.values / step).astype(np.int64) & ~1 | (question.gaps() > 0)
    moved = steps * step - found.values
    return replace(found, values=found.values + moved, low=found.low + moved, high=found.high + moved)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
