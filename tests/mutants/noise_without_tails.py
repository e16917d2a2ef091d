"""Draws noise again that is more than three times its scale."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C506"

sound = System.laplace


def laplace(self, values, scale, step):
    noise = sound(self, np.zeros(len(values)), scale, step)
    while (far := np.abs(noise) > 3 * scale).any():
        noise[far] = sound(self, np.zeros(far.sum()), scale, step)
    return np.rint(values / step) * step + noise


System.laplace = laplace

if __name__ == "__main__":
    main()
