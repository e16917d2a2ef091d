"""Starts its generator from the clock, to the second, when it is started."""

import time

import numpy as np

from compliance.__main__ import main
from compliance.answers.audits import Case
from compliance.noise.sampling import Seeded

KILLED_BY = "C521"

generator = Seeded(np.random.default_rng(int(time.time())))
Case._noise = lambda *_: generator

if __name__ == "__main__":
    main()
