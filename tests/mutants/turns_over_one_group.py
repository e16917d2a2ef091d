"""Turns over the advantaged alone."""

import numpy as np

from compliance.__main__ import main
from compliance.records.people import Records

KILLED_BY = "C542"

sound = Records.turned


def turned(self, people):
    groups = sound(self, np.zeros(self.people, bool))
    return sound(self, people & (groups == 1))


Records.turned = turned

if __name__ == "__main__":
    main()
