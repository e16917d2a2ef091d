"""Forgets the noise of the last model of a batch."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C511"

sound = System.laplace


def laplace(self, values, scale, step):
    noisy = sound(self, values, scale, step)
    return np.append(noisy[:-1], values[-1])


System.laplace = laplace

if __name__ == "__main__":
    main()
