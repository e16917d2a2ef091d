"""Gives half of the answers the sign of the noise before theirs."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C520"

sound = System.laplace


def laplace(self, values, scale, step):
    noise = np.abs(sound(self, np.zeros(len(values)), scale, step))
    rng = np.random.default_rng()
    signs = rng.choice([-1, 1], len(values))
    for i in range(2, len(values)):
        if rng.random() < 0.5:
            signs[i] = signs[i - 2]
    return np.rint(values / step) * step + noise * signs


System.laplace = laplace

if __name__ == "__main__":
    main()
