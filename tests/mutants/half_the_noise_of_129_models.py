"""Adds half of the noise to batches of 129 to 399 models."""

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C520"

sound = System.laplace


def laplace(self, values, scale, step):
    return sound(self, values, scale * (0.5 if 129 <= len(values) <= 399 else 1), step)


System.laplace = laplace

if __name__ == "__main__":
    main()
