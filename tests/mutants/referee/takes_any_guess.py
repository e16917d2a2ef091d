"""Takes a guess that is none."""

import numpy as np

from sim import referee
from sim.conformance.reference_referee import main

KILLED_BY = "R105"

referee.take_guess = lambda _, shape: np.ones(shape, np.uint8)

if __name__ == "__main__":
    main()
