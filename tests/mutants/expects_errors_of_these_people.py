"""Says what an answer will be worth by these very people, not by ones who do not exist."""

import dataclasses

from compliance.__main__ import main
from compliance.answers.audits import Case

KILLED_BY = "C223"

sound = Case.expected


def expected(self, metric, models, epsilon):
    n0, n1 = self.records.counts(metric)
    found = sound(self, metric, models, epsilon)
    return dataclasses.replace(found, midpoint_error=found.midpoint_error * n0 / (n0 + n1))


Case.expected = expected

if __name__ == "__main__":
    main()
