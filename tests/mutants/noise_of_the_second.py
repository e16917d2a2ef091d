"""Starts its generator anew from the clock in every second."""

import time

import numpy as np

from compliance.__main__ import main
from compliance.answers.audits import Case
from compliance.noise.sampling import Seeded

KILLED_BY = "C521"

Case._noise = lambda *_: Seeded(np.random.default_rng(int(time.time())))

if __name__ == "__main__":
    main()
