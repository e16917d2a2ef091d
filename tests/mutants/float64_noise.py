"""Adds noise of float64 to the exact gap: its last bits tell what the noise was to hide."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C506"


def laplace(_, values, scale, step):
    return values + np.random.default_rng().laplace(0.0, scale, len(values))


System.laplace = laplace

if __name__ == "__main__":
    main()
