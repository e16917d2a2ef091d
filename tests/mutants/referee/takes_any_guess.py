"""Takes a guess that is none."""

import numpy as np

from sim.conformance.reference_referee import main
from sim.games.reveal import referee

KILLED_BY = "R105"

referee.take_guess = lambda _, shape: np.ones(shape, np.uint8)

if __name__ == "__main__":
    main()
