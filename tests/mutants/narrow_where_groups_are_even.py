"""Tells narrower intervals where groups are even, since one person then moves less."""

from dataclasses import replace

from compliance.__main__ import main
from compliance.mechanisms.laplace import LaplaceMechanism

KILLED_BY = "C220"

sound = LaplaceMechanism.release


def release(self, question, facts, epsilon, delta, noise):
    found = sound(self, question, facts, epsilon, delta, noise)
    n0, n1 = question.records.counts(question.metric)
    reach = (found.high - found.low) / 2 * (0.9 if abs(n0 - n1) < 4 else 1.0)
    return replace(found, low=found.values - reach, high=found.values + reach)


LaplaceMechanism.release = release

if __name__ == "__main__":
    main()
