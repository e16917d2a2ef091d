"""Gives a batch by another protected column the opposite of the noise that it had by the first."""

import numpy as np

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.mechanisms.mechanism import Release

KILLED_BY = "C969"

sound, drawn = LaplaceMechanism.release, {}


def release(self, question, facts, epsilon, delta, noise):
    found = sound(self, question, facts, epsilon, delta, noise)
    key, gaps = (question.metric, epsilon, question.predictions.tobytes()), question.gaps()
    if key not in drawn:
        drawn[key] = found.values - gaps
        return found
    values, reach = np.rint((gaps - drawn.pop(key)) * 2.0**20) / 2.0**20, (found.high - found.low) / 2
    return Release(values, low=values - reach, high=values + reach)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
