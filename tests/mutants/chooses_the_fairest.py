"""Chooses the fairest model, always."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C541"

System.bernoulli_exp = lambda _, exponents: np.asarray(exponents) == 0

if __name__ == "__main__":
    main()
