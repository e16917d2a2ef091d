"""Counts the disadvantaged without noise."""

from compliance.__main__ import main
from compliance.noise.sampling import System

KILLED_BY = "C543"

sound = System.laplace


def laplace(self, values, scale, step):
    return sound(self, values, 0.0 if step == 1.0 and len(values) == 1 else scale, step)


System.laplace = laplace

if __name__ == "__main__":
    main()
