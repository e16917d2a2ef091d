"""Adds to each answer of a batch the noise of a batch of one."""

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.noise.sampling import System

KILLED_BY = "C507"

sound = System.laplace
sizes = []


def release(self, question, facts, epsilon, delta, noise, inner=LaplaceMechanism.release):
    sizes.append(question.queries)
    return inner(self, question, facts, epsilon, delta, noise)


LaplaceMechanism.release = release
System.laplace = lambda self, values, scale, step: sound(self, values, scale / sizes[-1], step)

if __name__ == "__main__":
    main()
