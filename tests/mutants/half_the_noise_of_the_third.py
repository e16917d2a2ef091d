"""Adds half of the noise to the third model of a batch."""

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C522"

sound = System.laplace


def laplace(self, values, scale, step):
    noisy = sound(self, values, scale, step)
    if noisy.ndim == 1 and len(noisy) > 2:
        noisy[2] = sound(self, values[2:3], scale / 2, step)[0]
    return noisy


System.laplace = laplace

if __name__ == "__main__":
    main()
