"""Forgets the sampling error in P(gap > threshold)."""

import numpy as np

from compliance.__main__ import main
from compliance.intervals import interval

KILLED_BY = "C524"

interval.sampling_deviations = lambda *_: np.array([1e-3])

if __name__ == "__main__":
    main()
