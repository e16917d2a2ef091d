"""Adds less noise to large gaps, which need less protection."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C520"

sound = System.laplace


def laplace(self, values, scale, step):
    noise = sound(self, np.zeros(len(values)), scale, step)
    noise = np.where(np.abs(values) > 0.2, np.rint(noise / 2 / step) * step, noise)
    return np.rint(values / step) * step + noise


System.laplace = laplace

if __name__ == "__main__":
    main()
