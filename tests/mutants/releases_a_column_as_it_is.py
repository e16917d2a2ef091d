"""Forgets to sanitise the last column."""

from compliance.__main__ import main
from compliance.answers.releases import Release
from fairwall.learning.design import one_hot

KILLED_BY = "C914"


def sanitised(self, request_id, epsilon, sound=Release.sanitised):
    released = sound(self, request_id, epsilon)
    last = self.columns[-1].domain
    released[:, -last:] = one_hot(self.values[:, -1], last)
    return released


Release.sanitised = sanitised

if __name__ == "__main__":
    main()
