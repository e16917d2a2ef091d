"""Answers a batch of more than a hundred models without noise."""

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism
from compliance.mechanisms.mechanism import exactly

KILLED_BY = "C507"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    if question.queries > 100:
        return exactly(question.gaps())
    return sound(self, question, facts, epsilon, delta, noise)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
