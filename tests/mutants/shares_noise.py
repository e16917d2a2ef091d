"""Adds one draw of noise to all answers of a batch."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C506"

sound = System.laplace


def laplace(self, values, scale, step):
    return values + sound(self, np.zeros(1), scale, step)


System.laplace = laplace

if __name__ == "__main__":
    main()
