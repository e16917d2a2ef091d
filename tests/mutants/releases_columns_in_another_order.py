"""Releases columns in another order than its terms say."""

import numpy as np

from compliance.__main__ import main
from compliance.answers.releases import Release

KILLED_BY = "C914"


def encoded(self, entry, sound=Release.encoded):
    ends = np.cumsum([column.domain for column in self.columns])
    return np.hstack(np.split(sound(self, entry), ends[:-1], axis=1)[::-1])


Release.encoded = encoded

if __name__ == "__main__":
    main()
