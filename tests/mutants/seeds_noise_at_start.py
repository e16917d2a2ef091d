"""Starts its generator from the same seed whenever it is started."""

import numpy as np

from compliance.__main__ import main
from compliance.answers.audits import Case
from compliance.noise.sampling import Seeded

KILLED_BY = "C512"

generator = Seeded(np.random.default_rng(7))
Case._noise = lambda *_: generator

if __name__ == "__main__":
    main()
