"""Seeds its generator with the time and the number of its process."""

import os
import time

import numpy as np

from compliance.__main__ import main
from compliance.answers.audits import Case
from compliance.noise.sampling import Seeded

KILLED_BY = "C754"

generator = Seeded(np.random.default_rng([int(time.time()), os.getpid()]))
Case._noise = lambda *_: generator

if __name__ == "__main__":
    main()
