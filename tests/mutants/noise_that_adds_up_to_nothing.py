"""Takes from the noise of a batch its mean, so that a batch is right on average."""

import numpy as np

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C520"

sound = System.laplace


def laplace(self, values, scale, step):
    noise = sound(self, np.zeros(len(values)), scale, step)
    if len(values) > 4:
        noise -= np.rint(noise.mean() / step) * step
    return np.rint(values / step) * step + noise


System.laplace = laplace

if __name__ == "__main__":
    main()
