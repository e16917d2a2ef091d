"""Lets the last bit of each answer tell who of the people is advantaged."""

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
    groups = question.records.turned(np.zeros(question.records.people, bool))
    bits = np.resize(groups, question.queries)
    steps = np.rint(found.values / step).astype(np.int64) & ~1 | bits
    return replace(found, values=steps * step, low=None, high=None)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
